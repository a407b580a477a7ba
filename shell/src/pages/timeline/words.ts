// Who did what, in words. Every checkpoint is put down to the agent, a command, the owner, SSH, or nobody.

import type { Of } from "../../api/client";
import type { IconName } from "../../ui/icons";
import { nameOf, shown } from "../files/paths";

export type Checkpoint = Of<"CheckpointInfo">;
export type Author = Of<"Author">;

export type WhoKind = "agent" | "command" | "you" | "ssh" | "unknown" | "undo" | "redo" | "restore" | "first";

export interface Who {
  kind: WhoKind;
  /** As it stands behind "by" or "changed": "the agent", "you". */
  words: string;
  conversation?: string;
}

export const WHO_ICONS: Record<WhoKind, IconName> = {
  agent: "agent",
  command: "terminal",
  you: "user",
  ssh: "network",
  unknown: "settings",
  undo: "undo",
  redo: "redo",
  restore: "timeline",
  first: "dot",
};

const some = (ids: readonly number[]) => (ids.length > 3 ? `${ids.length} changes` : ids.map((id) => `#${id}`).join(", "));

export function whoOf({ cause, authors }: Pick<Checkpoint, "cause" | "authors">): Who {
  switch (cause.kind) {
    case "first":
      return { kind: "first", words: "the beginning" };
    case "undo":
      return { kind: "undo", words: `undo of ${some(cause.of)}` };
    case "redo":
      return { kind: "redo", words: `redo of #${cause.of}` };
    case "restore":
      return { kind: "restore", words: `restore to #${cause.to}` };
    case "change":
      return whoAmong(authors);
  }
}

/** The agent works through commands and file calls, which are named beside it: it comes first. */
function whoAmong(authors: readonly Author[]): Who {
  for (const author of authors) if (author.kind === "conversation") return { kind: "agent", words: "the agent", conversation: author.id };
  for (const author of authors) if (author.kind === "ssh") return { kind: "ssh", words: "SSH" };
  for (const author of authors) if (author.kind === "command") return { kind: "command", words: `“${oneLine(author.line)}”` };
  return authors.length > 0 ? { kind: "you", words: "you" } : { kind: "unknown", words: "something in the background" };
}

export const oneLine = (line: string): string => line.trim().split("\n")[0]!.trim();

const DEEDS: Record<string, string> = {
  write: "You saved",
  append: "You added to",
  mkdir: "You made the folder",
  move: "You moved",
  copy: "You copied",
  remove: "You deleted",
  symlink: "You made the link",
  chmod: "You changed the rights of",
  archive: "You unpacked files into",
};

function deed(call: string, first: string | undefined): string {
  const [verb = "", ...rest] = call.split(" ");
  const path = rest.join(" ").replace(/^\/workspace\/?/, "") || first;
  const words = DEEDS[verb];
  if (!words) return call.charAt(0).toUpperCase() + call.slice(1);
  return `${words} ${path === "." ? "the workspace" : path ? nameOf(path) : "something"}`;
}

/** What happened, in one line. `first` is the first name that it changed, `titles` those of conversations. */
export function titleOf(checkpoint: Checkpoint, first?: string, titles?: ReadonlyMap<string, string>): string {
  const { cause, authors } = checkpoint;
  if (cause.kind === "first") return "As it was when history began";
  if (cause.kind === "undo") return `Undo of ${some(cause.of)}${cause.path ? ` in ${shown(cause.path)}` : ""}`;
  if (cause.kind === "redo") return `Redo of #${cause.of}`;
  if (cause.kind === "restore") return `Back to #${cause.to}`;
  const who = whoAmong(authors);
  if (who.conversation !== undefined) return titles?.get(who.conversation) || "The agent";
  const command = authors.find((author) => author.kind === "command");
  if (who.kind === "ssh") return command ? `$ ${oneLine(command.line)}` : "Over SSH";
  if (command) return `$ ${oneLine(command.line)}`;
  const call = authors.find((author) => author.kind === "api");
  return call ? deed(call.call, first) : "Something in the background";
}

/** Of a change of one name. */
export type Deed = "added" | "removed" | "moved" | "changed";

export function deedOf(change: Pick<Of<"FileChange">, "old" | "new" | "from">): Deed {
  if (change.from) return "moved";
  return !change.old ? "added" : change.new ? "changed" : "removed";
}

export const filesIn = ({ added, changed, removed }: Pick<Checkpoint, "added" | "changed" | "removed">): number => added + changed + removed;
