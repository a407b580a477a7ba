// Code and diffs as they are read. Highlighting comes later, when it has been loaded; the text is there
// at once and does not move.

import { useEffect, useState, type ReactNode } from "react";
import css from "./code.module.css";
import type { DiffLine } from "./diff";

type Highlighted = { text: string; className: string }[];

/** A piece of code, with colours once they are there. `name` is a language or a file's name. */
export function Code({ text, name }: { text: string; name: string }) {
  const [parts, setParts] = useState<Highlighted | null>(null);
  useEffect(() => {
    let here = true;
    // Long texts are not worth the time.
    if (text.length < 60_000) {
      void import("./highlight").then(({ highlight }) => highlight(text, name)).then((found) => here && setParts(found));
    }
    return () => void (here = false);
  }, [text, name]);
  const whole = parts?.map((part) => part.text).join("") === text;
  return <code className={css.code}>{whole ? parts!.map((part, index) => <span key={index} className={part.className}>{part.text}</span>) : text}</code>;
}

export function CodeBlock({ text, name, tools }: { text: string; name: string; tools?: ReactNode }) {
  return (
    <div className={css.block}>
      {tools && <div className={css.tools}>{tools}</div>}
      <pre tabIndex={0} aria-label={name ? `Code, ${name}` : "Code"}>
        <Code text={text} name={name} />
      </pre>
    </div>
  );
}

/** Lines of a diff; what was added and cut is also told without colours. */
export function Diff({ lines, label }: { lines: DiffLine[]; label: string }) {
  if (lines.length === 0) return <p className="soft small">No lines changed.</p>;
  return (
    <div className={css.diff} role="region" aria-label={label} tabIndex={0}>
      {lines.map((line, index) => (
        <div key={index} className={css[line.kind]}>
          <span className={css.number} aria-hidden="true">
            {line.kind === "hunk" ? "" : (line.after ?? line.before)}
          </span>
          <span className={css.sign}>{{ add: "+", cut: "−", same: " ", hunk: " " }[line.kind]}</span>
          <span className={css.text}>{line.text || " "}</span>
        </div>
      ))}
    </div>
  );
}
