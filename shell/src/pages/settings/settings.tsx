// Settings: how it looks, the desktop itself, who answers, who may come in, keys, and the computer.

import type { ComponentType } from "react";
import { to } from "../../app/router";
import { classes } from "../../ui/basics";
import { Icon, type IconName } from "../../ui/icons";
import { PageFrame } from "../../ui/page";
import { About } from "./about";
import { Access } from "./access";
import { Desktop } from "./desktop";
import { Look } from "./look";
import { Models } from "./models";
import css from "./settings.module.css";
import { Shortcuts } from "./shortcuts";

const SECTIONS: readonly { id: string; name: string; icon: IconName; show: ComponentType }[] = [
  { id: "look", name: "Look and layout", icon: "sun", show: Look },
  { id: "desktop", name: "Desktop", icon: "dock", show: Desktop },
  { id: "models", name: "Models", icon: "agent", show: Models },
  { id: "access", name: "Access", icon: "user", show: Access },
  { id: "keys", name: "Keyboard", icon: "terminal", show: Shortcuts },
  { id: "about", name: "Computer", icon: "info", show: About },
];

export default function Page({ rest }: { rest: string }) {
  const section = SECTIONS.find(({ id }) => id === rest) ?? SECTIONS[0]!;
  const Shown = section.show;
  return (
    <PageFrame title="Settings" flush>
      <div className={css.split}>
        <nav className={css.sections} aria-label="Settings">
          <ul>
            {SECTIONS.map(({ id, name, icon }) => (
              <li key={id}>
                <a
                  href={to("settings", id)}
                  // In a row that is too long for the screen, the one that is shown can be seen.
                  ref={id === section.id ? (link) => link?.scrollIntoView({ inline: "nearest", block: "nearest" }) : undefined}
                  aria-current={id === section.id ? "page" : undefined}
                  className={classes(css.section, id === section.id && css.chosen)}
                >
                  <Icon name={icon} size={18} />
                  {name}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div className={classes(css.content, "in-turn")} key={section.id} role="region" aria-label={section.name} tabIndex={0}>
          <Shown />
        </div>
      </div>
    </PageFrame>
  );
}
