// How the desktop looks in this browser.

import { prefer, usePreferences } from "../../app/preferences";
import { to } from "../../app/router";
import { Choice, IconButton, LinkButton } from "../../ui/basics";
import { Panel } from "../../ui/panel";
import { Setting, Switch } from "./parts";
import css from "./settings.module.css";

const [SMALLEST, LARGEST] = [9, 28];

export function Look() {
  const { theme, rail, dock, editorWrap, terminalSize } = usePreferences();
  const letters = (by: number) => prefer({ terminalSize: Math.min(LARGEST, Math.max(SMALLEST, terminalSize + by)) });
  return (
    <>
      <Panel title="Look" about="Kept in this browser.">
        <Setting name="Theme" hint="System follows your machine by day and night.">
          <Choice
            label="Theme"
            value={theme}
            options={[
              { value: "system", label: "System" },
              { value: "light", label: "Light" },
              { value: "dark", label: "Dark" },
            ]}
            onChange={(next) => prefer({ theme: next })}
          />
        </Setting>
        <Setting name="Rail" hint="On wide screens, names can stand beside the icons.">
          <Choice
            label="Rail"
            value={rail}
            options={[
              { value: "icons", label: "Icons" },
              { value: "names", label: "Names" },
            ]}
            onChange={(next) => prefer({ rail: next })}
          />
        </Setting>
        <Switch name="Chat beside every page" hint="On wide screens." on={dock} onChange={(on) => prefer({ dock: on })} />
        <Switch name="Wrap long lines in the editor" on={editorWrap} onChange={(on) => prefer({ editorWrap: on })} />
        <Setting name="Letters of the terminal" hint={<span style={{ fontFamily: "var(--mono)", fontSize: terminalSize }}>$ echo hello</span>}>
          <div className="row">
            <IconButton look="plain" label="Smaller" icon="down" disabled={terminalSize <= SMALLEST} onClick={() => letters(-1)} />
            <output className={css.number} aria-label="Size of letters">
              {terminalSize} px
            </output>
            <IconButton look="plain" label="Larger" icon="plus" disabled={terminalSize >= LARGEST} onClick={() => letters(1)} />
          </div>
        </Setting>
      </Panel>
      <Panel title="Colours" about="Every colour of the desktop is in one file. Change it and look: the page follows without a reload. Or ask the agent to.">
        <div className="row wraps">
          <LinkButton icon="edit" href={to("files", "shell/src/theme.css")}>
            Open theme.css
          </LinkButton>
          <LinkButton icon="chat" href={to("chat", "new")}>
            Ask the agent
          </LinkButton>
        </div>
        <Swatches />
      </Panel>
    </>
  );
}

const COLOURS = ["ground", "surface", "sunken", "line", "text", "soft", "accent", "good", "warn", "bad"];

function Swatches() {
  return (
    <ul className={css.swatches} aria-label="Colours of the theme">
      {COLOURS.map((name) => (
        <li key={name}>
          <span style={{ background: `var(--${name})` }} />
          <code>{name}</code>
        </li>
      ))}
    </ul>
  );
}
