// A text that is open: the version it was read with, whether it differs from that, and what happened to
// the file meanwhile. Pure; use-document.ts does what it says.

import type { Draft } from "../drafts";

export interface Version {
  text: string;
  etag: string;
}

export type Trouble =
  /** The file is another one than the version that was changed. */
  | { kind: "changed"; disk: Version }
  | { kind: "gone" };

export interface Document {
  /** What is saved over, and what the text is compared with. */
  base: Version;
  dirty: boolean;
  trouble: Trouble | null;
}

/** As it is opened: with what was not saved of it the last time, if there is something. */
export function opened(disk: Version, draft: Draft | undefined): { document: Document; text: string } {
  if (!draft || draft.text === disk.text) return { document: { base: disk, dirty: false, trouble: null }, text: disk.text };
  if (draft.etag === disk.etag) return { document: { base: disk, dirty: true, trouble: null }, text: draft.text };
  // What it was changed from is not known any more: only that it is not this.
  return { document: { base: { text: disk.text, etag: draft.etag }, dirty: true, trouble: { kind: "changed", disk } }, text: draft.text };
}

/** What the file has become, and whether the text that is shown is to follow. */
export function met({ base, dirty, trouble }: Document, text: string, disk: Version): { document: Document; reload: boolean } {
  const known = trouble?.kind === "changed" && trouble.disk.etag === disk.etag;
  if (disk.etag === base.etag || known) return { document: { base, dirty, trouble: trouble?.kind === "gone" ? null : trouble }, reload: false };
  // Only its rights or its time changed, or it has become what is shown.
  if (disk.text === base.text || disk.text === text) return { document: { base: disk, dirty: text !== disk.text, trouble: null }, reload: false };
  if (!dirty) return { document: { base: disk, dirty: false, trouble: null }, reload: true };
  return { document: { base, dirty, trouble: { kind: "changed", disk } }, reload: false };
}

/** After `saved` was written, while `text` may have gone on. */
export const written = (saved: Version, text: string): Document => ({ base: saved, dirty: text !== saved.text, trouble: null });

/** The part in which two texts differ, so that cursors outside of it stay where they are. */
export function difference(old: string, now: string): { from: number; to: number; insert: string } {
  const shorter = Math.min(old.length, now.length);
  let from = 0;
  while (from < shorter && old.charCodeAt(from) === now.charCodeAt(from)) from++;
  let tail = 0;
  while (tail < shorter - from && old.charCodeAt(old.length - 1 - tail) === now.charCodeAt(now.length - 1 - tail)) tail++;
  return { from, to: old.length - tail, insert: now.slice(from, now.length - tail) };
}

/** How the lines of a text end; a text with both kinds keeps each as it is. */
export const endingOf = (text: string): "\n" | "\r\n" => (/\r\n/.test(text) && !/(^|[^\r])\n/.test(text) ? "\r\n" : "\n");

/** What a text is indented with. */
export function indentOf(text: string): string {
  const tally = new Map<string, number>();
  let before = 0;
  for (const line of text.slice(0, 50_000).split("\n")) {
    const [, blank = ""] = /^([ \t]*)\S/.exec(line) ?? [];
    if (blank.startsWith("\t")) tally.set("\t", (tally.get("\t") ?? 0) + 1);
    const step = blank.length - before;
    if (!blank.includes("\t") && (step === 2 || step === 4)) tally.set(" ".repeat(step), (tally.get(" ".repeat(step)) ?? 0) + 1);
    if (/\S/.test(line)) before = blank.length;
  }
  const [best] = [...tally].sort(([, a], [, b]) => b - a);
  return best?.[0] ?? "  ";
}
