// Undo, redo and restore. What others did later is not overwritten without a word: the page asks, when
// it can, and nothing is touched until there is an answer.

import { useSyncExternalStore } from "react";
import { LONG_PATIENCE, post, type Of } from "../../api/client";
import { go, to } from "../../app/router";
import { count } from "../../ui/format";
import { say, sayError } from "../../ui/overlay";
import { shown } from "../files/paths";
import { find, type Conflict, type Outcome } from "./calls";

type Choice = Of<"Choice">;

/** What is to become of names that were changed later. */
export interface Answer {
  on_conflict: Choice;
  choices: Record<string, Choice>;
}

export interface Question {
  conflicts: readonly Conflict[];
  answer: (answer: Answer | null) => void;
}

type Call = "undo" | "redo" | "restore";

interface State {
  working: Call | null;
  question: Question | null;
}

let state: State = { working: null, question: null };
/** Pages that can ask; a message can be acted on when none of them is shown. */
let hosts = 0;
const watchers = new Set<() => void>();

function set(change: Partial<State>): void {
  state = { ...state, ...change };
  watchers.forEach((watcher) => watcher());
}

export const useTakingBack = (): State =>
  useSyncExternalStore(
    (watcher) => (watchers.add(watcher), () => void watchers.delete(watcher)),
    () => state,
  );

/** Says that questions are shown; returns what ends that, and with it an open question. */
export function host(): () => void {
  hosts += 1;
  return () => {
    hosts -= 1;
    if (hosts === 0) state.question?.answer(null);
  };
}

function ask(conflicts: readonly Conflict[]): Promise<Answer | null> {
  if (hosts === 0) {
    const words = `${count(conflicts.length, "file was", "files were")} changed since, so nothing was done.`;
    say(words, { label: "Look", act: () => go(to("timeline", "", { path: shown(conflicts[0]!.path) })) }, "bad");
    return Promise.resolve(null);
  }
  return new Promise((resolve) => {
    const answer = (given: Answer | null) => (set({ question: null }), resolve(given));
    set({ question: { conflicts, answer } });
  });
}

const send = (call: Call, body: object) => post<Outcome>(`/supervisor/history/${call}`, body, { patience: LONG_PATIENCE });

/** Carries it out, asking about conflicts; null when nothing came of it, which has been said. */
async function carryOut(call: Call, body: object): Promise<Outcome | null> {
  if (state.working) return null;
  set({ working: call });
  try {
    let outcome = await send(call, body);
    if (outcome.conflicts.length > 0) {
      const answer = await ask(outcome.conflicts);
      if (!answer) return null;
      outcome = await send(call, { ...body, ...answer });
    }
    if (!outcome.checkpoint) say("There was nothing to change.");
    return outcome.checkpoint ? outcome : null;
  } catch (error) {
    sayError(error);
    return null;
  } finally {
    set({ working: null });
  }
}

/** `3 brought back, 1 changed back.` */
export function resultOf({ checkpoint, remarks = [] }: Pick<Outcome, "checkpoint" | "remarks">): string {
  const { added = 0, changed = 0, removed = 0 } = checkpoint ?? {};
  const parts = [[added, "brought back"], [changed, "changed back"], [removed, "taken away"]] as const;
  const words = parts.filter(([number]) => number > 0).map(([number, word]) => `${number.toLocaleString("en")} ${word}`);
  const first = remarks[0] ? ` ${shown(remarks[0].path)}: ${remarks[0].message}.` : "";
  const more = remarks.length > 1 ? ` And ${count(remarks.length - 1, "more remark")}.` : "";
  return `${words.join(", ") || "done"}.${first}${more}`;
}

async function undo(body: object, said: string): Promise<boolean> {
  const outcome = await carryOut("undo", body);
  if (!outcome) return false;
  say(`${said}: ${resultOf(outcome)}`, { label: "Redo", act: () => void redoOf(outcome.checkpoint!.id) });
  return true;
}

export const undoLast = () => undo({ last: 1 }, "Undone");
/** Exactly this change; what came later stays. */
export const undoExactly = (...checkpoints: number[]) => undo({ checkpoints }, "Undone");

/** Only what it did to one name. */
export const undoWithin = (checkpoint: number, path: string) => undo({ checkpoints: [checkpoint], path }, "Undone");

export async function redoLast(): Promise<boolean> {
  const outcome = await carryOut("redo", {});
  if (!outcome) return false;
  say(`Done again: ${resultOf(outcome)}`, { label: "Undo", act: () => void undoRedo(outcome.of?.[0], outcome.checkpoint!.id) });
  return true;
}

/** Takes one undo back: by a redo when it is the last, otherwise like any other change. */
async function redoOf(id: number): Promise<void> {
  const next = await send("redo", { dry_run: true, on_conflict: "overwrite" }).catch(() => null);
  await (next?.of?.[0] === id ? redoLast() : undoExactly(id));
}

/** What an undo had taken back, and a redo put in place again, is taken back once more. */
async function undoRedo(undone: number | undefined, redo: number): Promise<void> {
  const cause = undone === undefined ? undefined : (await find(undone).catch(() => null))?.cause;
  await undoExactly(...(cause?.kind === "undo" ? cause.of : [redo]));
}

/** What a restore would change. */
export const preview = (checkpoint: number, path?: string): Promise<Outcome> => send("restore", { checkpoint, ...(path ? { path } : {}), dry_run: true, on_conflict: "overwrite" });

export async function restore(checkpoint: number, path?: string): Promise<boolean> {
  const outcome = await carryOut("restore", { checkpoint, ...(path ? { path } : {}) });
  if (!outcome) return false;
  const id = outcome.checkpoint!.id;
  say(`Back to #${checkpoint}: ${resultOf(outcome)}`, { label: "Undo", act: () => void undoExactly(id) });
  return true;
}
