// What a model says comes in pieces, and then whole. Pieces whose whole never comes are void.

import type { EventOf } from "./events";
import type { Step, Turn, Words } from "./view";

const isOpen = (step: Step): step is Words => (step.kind === "text" || step.kind === "thought") && step.open;

/** One piece more. */
export function withWords(turn: Turn, kind: Words["kind"], event: EventOf<"agent_message_chunk" | "agent_thought_chunk">): Turn {
  const { text } = event.content;
  if (text === "") return turn;
  const last = turn.steps.at(-1);
  if (last && isOpen(last) && last.kind === kind) return { ...turn, steps: turn.steps.with(-1, { ...last, text: last.text + text }) };
  return { ...turn, steps: [...turn.steps, { kind, seq: event.seq, at: event.at, text, open: true }] };
}

/** The model is asked again. */
export function voidOpen(turn: Turn): Turn {
  const steps = turn.steps.filter((step) => !isOpen(step));
  return steps.length === turn.steps.length ? turn : { ...turn, steps };
}

/** The whole has come. Where it says something else than its pieces did, it is right. */
export function settle(turn: Turn, event: EventOf<"reply">): Turn {
  const whole = event.reply.text ?? "";
  const pieces = turn.steps.filter((step) => isOpen(step) && step.kind === "text") as Words[];
  const said = pieces.map(({ text }) => text).join("");
  const closed = (step: Step): Step => (isOpen(step) ? { ...step, open: false } : step);
  if (said.trim() === whole.trim()) {
    const blank = (step: Step) => isOpen(step) && step.text.trim() === "";
    return { ...turn, steps: turn.steps.filter((step) => !blank(step)).map(closed) };
  }
  const first = pieces[0];
  const words: Words = { kind: "text", seq: first?.seq ?? event.seq, at: first?.at ?? event.at, text: whole, open: false };
  const steps = turn.steps.flatMap((step) => {
    if (!isOpen(step) || step.kind !== "text") return [closed(step)];
    return step === first && whole !== "" ? [words] : [];
  });
  return { ...turn, steps: first || whole === "" ? steps : [...steps, words] };
}
