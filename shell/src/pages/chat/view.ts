// A conversation as it is shown: turns, and the steps of each. All of it follows from its events (fold.ts).

import type { DiffContent, Ended, Location, Outcome, PlanEntry, ToolKind, ToolStatus, Usage } from "./events";

export interface View {
  /** The last event it has. */
  seq: number;
  turns: readonly Turn[];
  plan: readonly PlanEntry[];
  /** Whether a turn is under way. */
  working: boolean;
  asking: Question | null;
  /** How often the model was asked, what it read and wrote, and what that cost as far as it is known. */
  replies: number;
  used: Usage;
  dollars: number | null;
  /** Checkpoints that the owner has taken back, as `mark` names them. */
  undone: ReadonlySet<string>;
}

/** What the owner is asked, and about which call. */
export interface Question {
  call: string;
  title: string;
  seq: number;
}

export interface Spent {
  replies: number;
  tokens: number;
  dollars: number | null;
}

export interface Turn {
  /** Its first event. */
  seq: number;
  /** Its last event; a fork that has all of it ends there. */
  last: number;
  at: number;
  number: number;
  role: string;
  sandbox: string;
  mode: string;
  model: string;
  /** What the owner said. */
  text: string;
  steps: readonly Step[];
  ended: Ended | null;
  endedAt: number | null;
  /** Where the meter stood when it began. */
  start: { replies: number; used: Usage; dollars: number | null };
  spent: Spent;
}

/** What the model said or thought; while it is `open`, it may turn out to be void. */
export interface Words {
  kind: "text" | "thought";
  seq: number;
  at: number;
  text: string;
  open: boolean;
}

export interface Call {
  kind: "call";
  /** The number of the event that announced it: what an undo of this step names. */
  seq: number;
  /** What its events call it. Some services use the same again in a later reply. */
  id: string;
  title: string;
  tool: ToolKind;
  input: unknown;
  locations: readonly Location[];
  /** `cut_off`: its turn ended before it did. */
  status: ToolStatus | "cut_off";
  /** What it has written so far. */
  output: string;
  diffs: readonly DiffContent[];
  outcome: Outcome | null;
  asked: "waiting" | "allowed" | "denied" | null;
  at: number;
  endedAt: number | null;
  sandbox: string;
  checkpoints: readonly number[];
}

export interface Note {
  kind: "note";
  about: "notice" | "retry" | "compacted";
  seq: number;
  at: number;
  text: string;
}

export interface TakenBack {
  kind: "undone";
  seq: number;
  at: number;
  paths: readonly string[];
}

export type Step = Words | Call | Note | TakenBack;

export const EMPTY: View = {
  seq: 0,
  turns: [],
  plan: [],
  working: false,
  asking: null,
  replies: 0,
  used: { input: 0, output: 0 },
  dollars: null,
  undone: new Set(),
};

export const mark = (sandbox: string, checkpoint: number) => `${sandbox}@${checkpoint}`;
