// What came of a call: the lines of an edit, what a command wrote, the beginning of what was read.

import { useState, type ReactNode } from "react";
import { Button, Notice } from "../../ui/basics";
import { CodeBlock, Diff } from "../../ui/code";
import { baseName, count } from "../../ui/format";
import { ending, linesOf, outputOf, plain, unnumbered } from "./call-words";
import css from "./call.module.css";
import type { DiffContent } from "./events";
import { fileHref } from "./place";
import type { Call } from "./view";

const FEW_LINES = 24;
const MANY_LINES = 400;

export function CallDetail({ call, role }: { call: Call; role: string }) {
  if (call.diffs.length > 0) return call.diffs.map((diff, index) => <Edited key={index} diff={diff} role={role} named={diff.path === call.locations[0]?.path} />);
  if (call.tool === "execute") return <Command call={call} />;
  const told = call.outcome?.text;
  if (call.outcome?.failed) return <Notice tone="warn" icon="warning">{told}</Notice>;
  if (told === undefined) return <Given call={call} />;
  const file = call.tool === "read" ? unnumbered(told) : null;
  if (file) return <FileRead name={baseName(call.locations[0]?.path ?? "")} file={file} />;
  return (
    <>
      {call.tool === "other" && <Given call={call} />}
      <Lines text={told} show={FEW_LINES} label="What came of it" />
    </>
  );
}

/** `named`: the row above has its path already. */
function Edited({ diff, role, named }: { diff: DiffContent; role: string; named: boolean }) {
  const [all, setAll] = useState(false);
  const lines = linesOf(diff);
  const href = fileHref(diff.path, role);
  return (
    <figure className={css.figure}>
      {(!named || diff.oldText === null) && (
        <figcaption className={css.caption}>
          {!named && (href ? <a href={href}>{diff.path}</a> : <span>{diff.path}</span>)}
          {diff.oldText === null && <span>new file</span>}
        </figcaption>
      )}
      <Diff lines={all ? lines : lines.slice(0, MANY_LINES)} label={`Changes of ${diff.path}`} />
      {!all && lines.length > MANY_LINES && <More left={lines.length - MANY_LINES} onClick={() => setAll(true)} />}
    </figure>
  );
}

function Command({ call }: { call: Call }) {
  const { command } = (call.input ?? {}) as { command?: unknown };
  const end = ending(call);
  const text = outputOf(call);
  return (
    <div className={css.terminal}>
      {typeof command === "string" && <pre className={css.command}>{plain(command)}</pre>}
      {text.trim() !== "" && <Lines text={text.trimEnd()} show={MANY_LINES} fromEnd label="What it wrote" />}
      <p className={css.ending} data-bad={end !== null && end.code !== 0}>
        {end?.text ?? (call.status === "cut_off" ? "cut off before its end" : call.outcome ? "not run" : "running")}
      </p>
    </div>
  );
}

/** The last lines of what a command writes while it runs. */
export function LiveTail({ call }: { call: Call }) {
  if (!call.output) return null;
  const tail = plain(call.output.slice(-6000)).trimEnd().split("\n").slice(-8).join("\n");
  return (
    <div className={css.terminal}>
      <pre className={css.output}>{tail}</pre>
    </div>
  );
}

function FileRead({ name, file }: { name: string; file: NonNullable<ReturnType<typeof unnumbered>> }) {
  const [all, setAll] = useState(false);
  const lines = file.text.split("\n");
  const shown = all ? file.text : lines.slice(0, FEW_LINES).join("\n");
  return (
    <>
      <CodeBlock text={shown} name={name} tools={<span>{`lines ${file.first} to ${file.first + file.lines - 1}`}</span>} />
      {!all && lines.length > FEW_LINES && <More left={lines.length - FEW_LINES} onClick={() => setAll(true)} />}
      {file.rest && <p className="soft small">{file.rest}</p>}
    </>
  );
}

/** What a call was given, where nothing better is known of it. */
function Given({ call }: { call: Call }) {
  const text = JSON.stringify(call.input, null, 2) ?? "";
  return text === "{}" || text === "" ? null : <CodeBlock text={text} name="json" tools={<span>given</span>} />;
}

function Lines({ text, show, fromEnd, label }: { text: string; show: number; fromEnd?: boolean; label: string }) {
  const [all, setAll] = useState(false);
  const lines = text.split("\n");
  const left = lines.length - show;
  const shown = all || left <= 0 ? text : (fromEnd ? lines.slice(-show) : lines.slice(0, show)).join("\n");
  const more: ReactNode = !all && left > 0 && <More left={left} onClick={() => setAll(true)} />;
  return (
    <>
      {fromEnd && more}
      <pre className={css.output} tabIndex={0} role="group" aria-label={label}>
        {shown}
      </pre>
      {!fromEnd && more}
    </>
  );
}

function More({ left, onClick }: { left: number; onClick: () => void }) {
  return (
    <Button small look="quiet" className={css.more} onClick={onClick}>
      Show {count(left, "more line", "more lines")}
    </Button>
  );
}
