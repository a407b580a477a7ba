// One thing that happened in a run.

import { memo, useMemo } from "react";
import { Badge, Spinner } from "../../ui/basics";
import { Diff } from "../../ui/code";
import { compare, tally } from "../../ui/diff";
import { inWorkspace } from "../../ui/format";
import { Icon, type IconName } from "../../ui/icons";
import { Markdown } from "../../ui/markdown";
import css from "./runs.module.css";
import type { Call, FileDiff, Item } from "./story";

const TOOLS: Record<string, IconName> = { read: "file", edit: "edit", search: "search", execute: "terminal", think: "memory", fetch: "network" };

export const Happened = memo(function Happened({ item }: { item: Item }) {
  switch (item.kind) {
    case "says":
      return (
        <li className={css.says}>
          <Markdown text={item.text} />
        </li>
      );
    case "thinks":
      return (
        <li>
          <details className={css.thought}>
            <summary>It thought about it</summary>
            <p>{item.text}</p>
          </details>
        </li>
      );
    case "call":
      return <Called call={item} />;
    case "output":
      return (
        <li>
          {item.left > 0 && <p className="small soft">{item.left.toLocaleString("en")} earlier lines are left out.</p>}
          <pre className={css.output} data-stream={item.stream} tabIndex={0} aria-label={item.stream === "stderr" ? "Standard error" : "Output"}>
            {item.lines.join("\n")}
          </pre>
        </li>
      );
    case "note":
      return (
        <li className={css.note}>
          <Icon name="info" size={16} />
          {item.text}
        </li>
      );
  }
});

function Called({ call }: { call: Call }) {
  const busy = call.status === "pending" || call.status === "in_progress";
  const more = call.output !== "" || call.diffs.length > 0;
  const head = (
    <>
      <Icon name={TOOLS[call.tool] ?? "settings"} size={16} />
      <span className="grow cut-off" title={call.title}>
        {call.title}
      </span>
      {busy && <Spinner label="Under way" />}
      {call.status === "failed" && <Badge tone="bad">Failed</Badge>}
    </>
  );
  if (!more) return <li className={css.call}>{head}</li>;
  return (
    <li>
      <details className={css.unfolds} open={call.status === "failed" || undefined}>
        <summary className={css.call}>{head}</summary>
        {call.diffs.map((diff, index) => (
          <Change key={index} diff={diff} />
        ))}
        {call.output && (
          <pre className={css.output} tabIndex={0} aria-label={`Output of ${call.title}`}>
            {call.output}
          </pre>
        )}
      </details>
    </li>
  );
}

function Change({ diff }: { diff: FileDiff }) {
  const lines = useMemo(() => compare(diff.before, diff.after), [diff]);
  const { added, cut } = tally(lines);
  return (
    <div className="column">
      <p className="row small">
        <code className="cut-off">{inWorkspace(diff.path)}</code>
        <span className={css.added}>+{added}</span>
        <span className={css.cut}>−{cut}</span>
      </p>
      <Diff lines={lines} label={`Changes of ${diff.path}`} />
    </div>
  );
}
