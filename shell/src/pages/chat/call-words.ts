// What a call is and came to, in few words. Pure.

import { tally, compare, type DiffLine } from "../../ui/diff";
import type { DiffContent } from "./events";
import type { Call } from "./view";

export interface Heading {
  verb: string;
  /** What it is about, in the letters of code. */
  about: string;
  /** A path, when `about` ends with it. */
  path: string | null;
}

/** `edit src/a.ts` becomes what is done and to what. */
export function heading(call: Call): Heading {
  if (call.tool === "execute") return { verb: "Run", about: call.title, path: null };
  if (nameOf(call) === "write_todos" || call.title === "write down what is to be done") return { verb: "Update the list of what is to be done", about: "", path: null };
  // A call that could not be made has the name of its tool for a title.
  if (/^\w+$/.test(call.title)) return { verb: capital(call.title.replaceAll("_", " ")), about: "", path: null };
  const path = call.locations[0]?.path ?? null;
  const [word = "", ...rest] = call.title.split(" ");
  const verb = capital(word);
  if (path === null || !call.title.endsWith(path)) return { verb, about: rest.join(" "), path: null };
  const before = call.title.slice(word.length, -path.length).trim();
  return { verb, about: before, path };
}

export const nameOf = (call: Call): string => call.outcome?.name ?? "";
export const isOver = (call: Call): boolean => call.status !== "pending" && call.status !== "in_progress";

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/** How a command ended, as its answer says in its last line: `exit code 1`, `ended by signal 9`. */
export function ending(call: Call): { text: string; code: number | null } | null {
  if (call.tool !== "execute" || !call.outcome) return null;
  const [, text] = /\[([^\]\n]+)\]\s*$/.exec(call.outcome.text) ?? [];
  if (!text) return null;
  const [, code] = /^exit code (-?\d+)/.exec(text) ?? [];
  return { text, code: code === undefined ? null : Number(code) };
}

/** What a command wrote: as it came, or as the model was told when it was not shown. */
export function outputOf(call: Call): string {
  const told = call.outcome?.text ?? "";
  const text = call.output || (ending(call) ? told.replace(/\[[^\]\n]+\]\s*$/, "") : told);
  return plain(text);
}

/** Without what moves a cursor or paints: of a line that was written over, what stands there at the end. */
export function plain(text: string): string {
  const unpainted = text.replaceAll(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g, "");
  const lines = unpainted.replaceAll("\r\n", "\n").split("\n");
  return lines.map((line) => line.slice(line.lastIndexOf("\r") + 1).replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "")).join("\n");
}

/** A file as `read_file` gives it: lines with their numbers in front. */
export function unnumbered(text: string): { text: string; first: number; lines: number; rest: string } | null {
  const lines = text.split("\n");
  const numbered = lines.findIndex((line) => !/^ *\d+\t/.test(line));
  const body = numbered < 0 ? lines : lines.slice(0, numbered);
  if (body.length === 0) return null;
  const rest = numbered < 0 ? "" : lines.slice(numbered).join("\n").trim();
  return { text: body.map((line) => line.replace(/^ *\d+\t/, "")).join("\n"), first: Number.parseInt(body[0]!, 10), lines: body.length, rest };
}

/** Long texts take their time; how many lines changed is then not worth it. */
const LONGEST = 200_000;
const known = new WeakMap<DiffContent, DiffLine[]>();

export function linesOf(diff: DiffContent): DiffLine[] {
  const found = known.get(diff);
  if (found) return found;
  // A file that was not there had no lines, not one empty one.
  const lines = diff.oldText === null ? fresh(diff.newText) : compare(diff.oldText, diff.newText);
  known.set(diff, lines);
  return lines;
}

const fresh = (text: string): DiffLine[] => text.replace(/\n$/, "").split("\n").map((line, index) => ({ kind: "add", text: line, after: index + 1 }));

export function changed(call: Call): { added: number; cut: number } | null {
  if (call.diffs.length === 0 || call.diffs.some(({ oldText, newText }) => (oldText?.length ?? 0) + newText.length > LONGEST)) return null;
  const sums = call.diffs.map((diff) => tally(linesOf(diff)));
  return { added: sums.reduce((sum, { added }) => sum + added, 0), cut: sums.reduce((sum, { cut }) => sum + cut, 0) };
}
