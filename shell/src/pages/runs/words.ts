// States and ends of runs, in words.

import type { Of } from "../../api/client";

type Run = Of<"RunInfo">;
type Tone = "good" | "warn" | "bad" | "accent" | "plain";

const STATES: Record<Of<"RunState">, string> = {
  waiting: "Waits for its files",
  queued: "Waits for its turn",
  starting: "Starting",
  running: "Running",
  finishing: "Finishing",
  ended: "Ended",
};

const ENDS: Record<Of<"RunEnd">, { short: string; long: string; tone: Tone }> = {
  done: { short: "Done", long: "It is done.", tone: "good" },
  max_steps: { short: "Out of steps", long: "It took as many steps as it may.", tone: "warn" },
  time_out: { short: "Out of time", long: "Its time was up.", tone: "warn" },
  budget: { short: "Out of budget", long: "Its budget was used up.", tone: "warn" },
  model: { short: "Model failed", long: "The model failed, and trying again did not help.", tone: "bad" },
  invalid: { short: "Model erred", long: "The model called what cannot be called, twice in a row.", tone: "bad" },
  interrupted: { short: "Interrupted", long: "The gateway ended while it ran.", tone: "bad" },
  agent: { short: "Agent failed", long: "The agent ended with an error of its own.", tone: "bad" },
  cancelled: { short: "Cancelled", long: "It was cancelled.", tone: "plain" },
  failed: { short: "Failed", long: "It could not be run.", tone: "bad" },
};

export const isOver = (run: Run) => run.state === "ended";

export function standing({ state, outcome }: Run): { words: string; tone: Tone } {
  if (state !== "ended") return { words: STATES[state] ?? state, tone: "accent" };
  const end = outcome && ENDS[outcome.how];
  return end ? { words: end.short, tone: end.tone } : { words: "Ended", tone: "plain" };
}

export function ending({ how, message, hint, exit_code: code }: Of<"RunOutcome">): string {
  const said = [message, hint].filter(Boolean).map((part) => ` ${part!.charAt(0).toUpperCase()}${part!.slice(1).replace(/\.$/, "")}.`);
  return `${ENDS[how]?.long ?? "It ended."}${said.join("")} Exit code ${code}.`;
}

/** How long it has been at work, or was. */
export function lasted({ started_at: started, ended_at: ended }: Run, now: number): number | null {
  return started ? (ended ?? now) - started : null;
}
