// A process of nacre.toml in a word: how it is, and why.

import type { Of } from "../api/client";
import { Badge } from "./basics";

/** `responding` is false when it is ready and no longer answers; older supervisors do not tell. */
export type Process = Of<"ProcessInfo"> & { responding?: boolean | null };
type State = Of<"ProcessState">;

const WORDS: Partial<Record<State, { words: string; tone: "good" | "warn" | "bad" | "plain" }>> = {
  ready: { words: "Ready", tone: "good" },
  starting: { words: "Starting", tone: "warn" },
  stopping: { words: "Stopping", tone: "warn" },
  stopped: { words: "Stopped", tone: "plain" },
  "backing-off": { words: "Starts again soon", tone: "warn" },
  "crash-looping": { words: "Keeps ending", tone: "bad" },
  failed: { words: "Failed", tone: "bad" },
};

export function ProcessBadge({ process }: { process: Process }) {
  if (process.state === "ready" && process.responding === false) return <Badge tone="bad">Does not answer</Badge>;
  const { words, tone } = WORDS[process.state] ?? { words: process.state, tone: "plain" };
  return (
    <Badge tone={tone} title={process.reason ?? undefined}>
      {words}
    </Badge>
  );
}
