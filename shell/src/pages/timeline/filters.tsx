// Which moments are shown: of a path, and by whom.

import { useEffect, useState } from "react";
import { classes, IconButton, Input } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import ui from "../../ui/ui.module.css";
import { plain } from "../files/paths";
import type { WhoFilter } from "./feed";
import { show, type Shown } from "./place";
import css from "./timeline.module.css";
import { useTitles } from "./use-feed";

const WHO: readonly { value: WhoFilter | "named"; label: string }[] = [
  { value: "all", label: "Everyone" },
  { value: "agent", label: "The agent" },
  { value: "command", label: "Commands" },
  { value: "you", label: "You" },
  { value: "ssh", label: "SSH" },
  { value: "unknown", label: "Nobody known" },
  { value: "named", label: "Only named" },
];

const PAUSE = 300;

export function Filters({ shown }: { shown: Shown }) {
  const choose = (value: WhoFilter | "named") => show(shown, value === "named" ? { named: true, who: "all" } : { named: false, who: value }, "replace");
  return (
    <div className={css.filters}>
      <PathFilter shown={shown} />
      <select className={classes(ui.input, css.who)} aria-label="By whom" value={shown.named ? "named" : shown.who} onChange={(event) => choose(event.target.value as WhoFilter)}>
        {WHO.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      {shown.conversation && <OfConversation shown={shown} />}
    </div>
  );
}

/** What is typed is looked for when typing has ceased. */
function PathFilter({ shown }: { shown: Shown }) {
  const [typed, setTyped] = useState(shown.path);
  const wanted = plain(typed) ?? "";
  // A link may have changed it, too.
  useEffect(() => setTyped((now) => (plain(now) === shown.path ? now : shown.path)), [shown.path]);
  useEffect(() => {
    if (wanted === shown.path) return;
    const timer = setTimeout(() => show(shown, { path: wanted }, "replace"), PAUSE);
    return () => clearTimeout(timer);
  }, [wanted, shown]);
  return (
    <div className={css.path}>
      <Icon name="search" size={16} />
      <Input aria-label="Only this file or folder" placeholder="File or folder" value={typed} onChange={(event) => setTyped(event.target.value)} />
      {typed && <IconButton small label="All files" icon="close" onClick={() => (setTyped(""), show(shown, { path: "" }, "replace"))} />}
    </div>
  );
}

function OfConversation({ shown }: { shown: Shown }) {
  const title = useTitles().get(shown.conversation);
  return (
    <div className={css.only}>
      <Icon name="agent" size={16} />
      <span className="grow cut-off">Only of “{title || "a conversation"}”</span>
      <IconButton small label="Of everything" icon="close" onClick={() => show(shown, { conversation: "" }, "replace")} />
    </div>
  );
}
