// Before something is taken back: what that would change, and what to do where somebody changed it later.

import { useState } from "react";
import type { Of } from "../../api/client";
import { Button, Choice, Notice } from "../../ui/basics";
import { count, inWorkspace } from "../../ui/format";
import { Dialog } from "../../ui/overlay";
import { Time } from "../../ui/time";
import css from "./undo.module.css";
import type { Open, Undoing } from "./use-undo";

type Answer = "keep" | "overwrite";

export function UndoDialog({ undoing }: { undoing: Undoing }) {
  const { open } = undoing;
  if (!open) return null;
  return open.why === "conflicts" ? <Conflicts open={open} undoing={undoing} /> : <Preview open={open} undoing={undoing} />;
}

const nameOf = (path: Of<"WirePath">) => (typeof path === "string" ? path : "a name that is not text");

const MOST_NAMED = 200;

/** All that a conversation changed is a lot: it is shown first. */
function Preview({ open, undoing }: { open: Open; undoing: Undoing }) {
  const total = open.found.sandboxes.reduce((sum, { outcome }) => sum + outcome.changes.total, 0);
  const conflicts = open.found.sandboxes.reduce((sum, { outcome }) => sum + outcome.conflicts.length, 0);
  return (
    <Dialog
      title="Undo everything this conversation changed?"
      open
      onClose={undoing.close}
      acts={
        <>
          <Button onClick={undoing.close}>Cancel</Button>
          <Button look="primary" icon="undo" autoFocus busy={undoing.busy} onClick={() => undoing.go({})}>
            Undo everything
          </Button>
        </>
      }
    >
      <p>
        {count(total, "file or folder", "files and folders")} would become what they were before. What others changed meanwhile stays, and this can be redone.
      </p>
      {conflicts > 0 && <Notice tone="warn" icon="warning">{count(conflicts, "name was", "names were")} changed again later. You will be asked about each.</Notice>}
      {open.found.sandboxes.map(({ sandbox, outcome }) => (
        <section key={sandbox} className="column">
          <h3>On {sandbox}</h3>
          <ul className={css.names}>
            {outcome.changes.changes.slice(0, MOST_NAMED).map((change) => (
              <li key={nameOf(change.path)}>
                <span className={css.what}>{!change.new ? "removed" : !change.old ? "comes back" : "changed back"}</span>
                <span className={css.path}>{inWorkspace(nameOf(change.path))}</span>
              </li>
            ))}
          </ul>
          {outcome.changes.total > MOST_NAMED && <p className="soft small">and {count(outcome.changes.total - MOST_NAMED, "other", "others")}</p>}
        </section>
      ))}
    </Dialog>
  );
}

const REASONS: Record<string, string> = {
  changed_later: "changed again later",
  changed_between: "changed by somebody else in between",
  holds_later_files: "a folder with files that came later",
  parent_replaced: "the folder it was in is something else now",
};

const OPTIONS = [
  { value: "keep", label: "Keep it as it is" },
  { value: "overwrite", label: "Put the old one back" },
] as const;

function Conflicts({ open, undoing }: { open: Open; undoing: Undoing }) {
  const all = open.found.sandboxes.flatMap(({ sandbox, outcome }) => outcome.conflicts.map((conflict) => ({ sandbox, conflict })));
  const [chosen, setChosen] = useState<Record<string, Answer>>({});
  const of = (path: string): Answer => chosen[path] ?? "keep";
  const go = () => {
    const named = all.map(({ conflict }) => conflict.path).filter((path) => typeof path === "string");
    // What has no name that could be told apart stays.
    undoing.go({ choices: Object.fromEntries(named.map((path) => [path, of(path)])), on_conflict: "keep" });
  };
  const choose = (answer: Answer) => setChosen(Object.fromEntries(all.map(({ conflict }) => [nameOf(conflict.path), answer])));
  return (
    <Dialog
      wide
      title="Some of it was changed later"
      open
      onClose={undoing.close}
      acts={
        <>
          <Button look="quiet" onClick={() => choose("keep")}>Keep all</Button>
          <Button look="quiet" onClick={() => choose("overwrite")}>Put all back</Button>
          <span className="grow" />
          <Button onClick={undoing.close}>Cancel</Button>
          <Button look="primary" icon="undo" busy={undoing.busy} onClick={go}>Undo</Button>
        </>
      }
    >
      <p>Nothing was touched yet. Say what to do about {all.length === 1 ? "this name" : `these ${all.length} names`}; everything else is undone. What is replaced stays in the timeline.</p>
      <ul className={css.conflicts}>
        {all.map(({ sandbox, conflict }) => (
          <li key={`${sandbox} ${nameOf(conflict.path)}`}>
            <div className={css.about}>
              <span className={css.path}>{inWorkspace(nameOf(conflict.path))}</span>
              <span className="soft small">
                {REASONS[conflict.reason] ?? conflict.reason}
                {conflict.by && <> by {authors(conflict.by)}, <Time at={conflict.by.time} /></>}
                {open.found.sandboxes.length > 1 && `, on ${sandbox}`}
              </span>
            </div>
            <Choice label={`What to do about ${nameOf(conflict.path)}`} value={of(nameOf(conflict.path))} options={OPTIONS} onChange={(answer) => setChosen({ ...chosen, [nameOf(conflict.path)]: answer })} />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function authors({ authors: all }: Of<"CheckpointInfo">): string {
  const words = all.map((author) => {
    switch (author.kind) {
      case "command":
        return `the command ${author.line}`;
      case "conversation":
        return "a conversation";
      case "ssh":
        return "SSH";
      case "api":
        return "you";
    }
  });
  return [...new Set(words)].join(" and ") || "somebody";
}
