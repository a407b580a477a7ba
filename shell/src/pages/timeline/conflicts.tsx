// Names that somebody changed after what is to be taken back: each is kept as it is or put back.

import { useEffect, useRef, useState } from "react";
import type { Of } from "../../api/client";
import { to } from "../../app/router";
import { Button, Choice } from "../../ui/basics";
import { count } from "../../ui/format";
import { Dialog } from "../../ui/overlay";
import { Time } from "../../ui/time";
import { shown } from "../files/paths";
import css from "./conflicts.module.css";
import { host, useTakingBack, type Answer, type Question } from "./take-back";
import { whoOf } from "./words";

type Decision = "keep" | "overwrite";

const OPTIONS = [
  { value: "keep", label: "Keep", title: "Leave it as it is now" },
  { value: "overwrite", label: "Put back", title: "Replace what is there now; that stays in the history" },
] as const;

const REASONS: Record<string, string> = {
  changed_later: "was changed later",
  changed_between: "was changed in between",
  holds_later_files: "holds files that came later",
  parent_replaced: "is in a folder that was replaced",
};

const MOST_SHOWN = 100;

/** Shows questions while the page is there. */
export function Conflicts() {
  const { question } = useTakingBack();
  useEffect(() => host(), []);
  return question ? <Asked key={question.conflicts.length} question={question} /> : null;
}

function Asked({ question }: { question: Question }) {
  const { conflicts, answer } = question;
  const [otherwise, setOtherwise] = useState<Decision>("keep");
  const [single, setSingle] = useState<Record<string, Decision>>({});
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  const all = (decision: Decision) => (setOtherwise(decision), setSingle({}));
  const decided: Answer = { on_conflict: otherwise, choices: single };
  return (
    <Dialog
      open
      title={`${count(conflicts.length, "file was", "files were")} changed since`}
      onClose={() => answer(null)}
      acts={
        <>
          <Button onClick={() => answer(null)}>Cancel</Button>
          <Button look="primary" ref={button} onClick={() => answer(decided)}>
            Go on
          </Button>
        </>
      }
    >
      <p>Nothing has been touched yet. What is to become of what is there now?</p>
      {conflicts.length > 1 && (
        <div className="row wraps">
          <Button small onClick={() => all("keep")}>
            Keep all
          </Button>
          <Button small onClick={() => all("overwrite")}>
            Put all back
          </Button>
        </div>
      )}
      <ul className={css.list}>
        {conflicts.slice(0, MOST_SHOWN).map((conflict) => {
          const name = shown(conflict.path);
          // A name that is not text cannot be told apart in the answer: it goes with the rest.
          const text = typeof conflict.path === "string";
          return (
            <li key={name} className={css.item}>
              <div className="grow">
                <div className={css.name}>{name}</div>
                <Why conflict={conflict} />
              </div>
              {text && <Choice label={`What becomes of ${name}`} value={single[name] ?? otherwise} options={OPTIONS} onChange={(value) => setSingle({ ...single, [name]: value })} />}
            </li>
          );
        })}
      </ul>
      {conflicts.length > MOST_SHOWN && <p className="soft small">And {count(conflicts.length - MOST_SHOWN, "more", "more")}, which go the way of “all”.</p>}
    </Dialog>
  );
}

function Why({ conflict: { reason, by, target } }: { conflict: Of<"Conflict"> }) {
  return (
    <div className="soft small">
      {REASONS[reason] ?? reason}
      {by && (
        <>
          {" by "}
          <a href={to("timeline", String(by.id))}>{whoOf(by).words}</a>, <Time at={by.time} />
        </>
      )}
      {!target && "; putting it back removes it"}
    </div>
  );
}
