// One turn: what the owner said, what came of it, how it ended, and what can be done about it.

import { memo } from "react";
import { Badge, Notice, Spinner } from "../../ui/basics";
import { copyText } from "../../ui/clipboard";
import { count, dollars, duration, short } from "../../ui/format";
import { Menu, say, sayError, type MenuItem } from "../../ui/overlay";
import { Time } from "../../ui/time";
import { isOver } from "./call-words";
import type { Ended } from "./events";
import { OneStep, Said } from "./steps";
import { useTalk } from "./talk-context";
import css from "./turn.module.css";
import type { Call, Step, Turn } from "./view";

export const OneTurn = memo(function OneTurn({ turn }: { turn: Turn }) {
  return (
    <article className={css.turn} id={`turn-${turn.seq}`} data-live={!turn.ended} aria-label={`Turn ${turn.number}`}>
      <Said text={turn.text} role={turn.role} />
      <div className={css.steps}>
        <h2 className="unseen">The agent</h2>
        <div className={css.group}>
          {turn.steps.map((step) => (
            <OneStep key={`${step.kind}-${step.seq}`} step={step} role={turn.role} />
          ))}
        </div>
        {!turn.ended && <Now steps={turn.steps} />}
        {turn.ended && <How ended={turn.ended} />}
      </div>
      {turn.ended && <Foot turn={turn} />}
    </article>
  );
});

const DOING: Record<Call["tool"], string> = {
  read: "Reading",
  edit: "Writing",
  search: "Searching",
  execute: "Running a command",
  think: "Thinking",
  fetch: "Fetching",
  other: "Working",
};

/** What it does at this moment. */
function Now({ steps }: { steps: readonly Step[] }) {
  const last = steps.at(-1);
  const words = () => {
    if (!last) return "Reading what you said";
    if (last.kind === "call" && last.asked === "waiting") return "Waiting for your answer";
    if (last.kind === "call" && !isOver(last)) return DOING[last.tool];
    if (last.kind === "thought" && last.open) return "Thinking";
    if (last.kind === "text" && last.open) return "Writing";
    return "Thinking";
  };
  return (
    <p className={css.now}>
      <Spinner /> {words()}
    </p>
  );
}

const WHY: Record<Ended["reason"], string> = {
  done: "",
  max_steps: "It took as many steps as it may in one turn. Say “go on” to let it continue.",
  time_out: "Its time was up. Say “go on” to let it continue.",
  budget: "The budget is used up",
  model: "The model failed",
  invalid: "It called what cannot be called",
  cancelled: "Stopped.",
  interrupted: "Interrupted: your computer stopped in the middle of this turn. Nothing of it is done again unless you say so.",
};

function How({ ended }: { ended: Ended }) {
  if (ended.reason === "done") return null;
  if (ended.reason === "cancelled") return <p className={css.note}>{WHY.cancelled}</p>;
  return (
    <Notice tone="warn" icon="warning">
      {WHY[ended.reason] ?? "It ended"}
      {ended.message && `: ${ended.message}`}
    </Notice>
  );
}

/** What it took, and what can be done about it from here. */
function Foot({ turn }: { turn: Turn }) {
  const { parent, takenBack, undo, fork } = useTalk();
  const { spent } = turn;
  const calls = turn.steps.filter((step): step is Call => step.kind === "call");
  const changing = calls.filter((call) => call.checkpoints.length > 0 || (call.status === "cut_off" && call.tool !== "read"));
  const open = changing.filter((call) => !takenBack(call));
  const others = parent !== null && turn.seq <= parent.seq;
  const said = turn.steps.flatMap((step) => (step.kind === "text" ? [step.text] : [])).join("\n\n");
  const items: MenuItem[] = [
    { label: "Undo what this turn changed", icon: "undo", disabled: others || open.length === 0, act: () => undo({ turn: turn.seq }) },
    { label: "Fork from here", icon: "fork", act: () => fork(turn.last) },
    { label: "Say it differently, in a fork", icon: "edit", act: () => fork(turn.seq - 1, turn.text) },
    { label: "Copy what it said", icon: "copy", disabled: said === "", act: () => void copyText(said).then(() => say("Copied"), sayError) },
  ];
  return (
    <footer className={css.foot}>
      <Menu label={`What to do about turn ${turn.number}`} items={items} />
      <span>{[count(spent.replies, "step"), `${short(spent.tokens)} tokens`, spent.dollars !== null && dollars(spent.dollars), turn.endedAt !== null && duration(turn.endedAt - turn.at)].filter(Boolean).join(" · ")}</span>
      <Time at={turn.endedAt ?? turn.at} />
      {changing.length > 0 && open.length === 0 && <Badge tone="warn">taken back</Badge>}
      {open.length > 0 && !others && (
        <button type="button" className={css.undoTurn} onClick={() => undo({ turn: turn.seq })}>
          Undo this turn
        </button>
      )}
    </footer>
  );
}
