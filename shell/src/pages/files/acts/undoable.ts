// A change of files that is said with a way to take exactly it back.

import type { QueryClient } from "@tanstack/react-query";
import { say } from "../../../ui/overlay";
import { newestOf, status } from "../../timeline/calls";
import { undoExactly } from "../../timeline/take-back";

type Verb = "remove" | "move" | "copy" | "mkdir" | "write";

/** Whether what is done now will be recorded, and so can be taken back. */
export async function isRecorded(client: QueryClient): Promise<boolean> {
  const found = await client.fetchQuery({ queryKey: ["history", "status"], queryFn: status, staleTime: 10_000 }).catch(() => null);
  return found?.state.state === "recording";
}

/** Says what was done. By now it is recorded, and the newest change of that path, unless someone was faster. */
export async function sayUndoable(words: string, verb: Verb, path: string): Promise<void> {
  const checkpoint = await newestOf(path).catch(() => null);
  const ours = checkpoint?.authors.some((author) => author.kind === "api" && author.call === `${verb} ${path}`);
  say(words, ours ? { label: "Undo", act: () => void undoExactly(checkpoint!.id) } : undefined);
}
