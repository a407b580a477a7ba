// Lines of a unified diff, and a diff of two texts.

export interface DiffLine {
  kind: "same" | "add" | "cut" | "hunk";
  text: string;
  /** Line numbers before and after. */
  before?: number;
  after?: number;
}

/** Reads a unified diff: its hunks, without the lines that name files. */
export function readUnified(diff: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let [before, after, inside] = [0, 0, false];
  for (const line of diff.split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      [before, after, inside] = [Number(hunk[1]), Number(hunk[2]), true];
      lines.push({ kind: "hunk", text: line });
    } else if (!inside) continue;
    else if (line.startsWith("+")) lines.push({ kind: "add", text: line.slice(1), after: after++ });
    else if (line.startsWith("-")) lines.push({ kind: "cut", text: line.slice(1), before: before++ });
    else if (line.startsWith(" ")) lines.push({ kind: "same", text: line.slice(1), before: before++, after: after++ });
  }
  return lines;
}

const MOST_LINES = 2000;

/** The difference of two texts by lines, with three lines around each change. */
export function compare(old: string, now: string): DiffLine[] {
  const [a, b] = [old.split("\n"), now.split("\n")];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = between(a.slice(head, a.length - tail), b.slice(head, b.length - tail), head);
  const around = (from: number, to: number, shift: number): DiffLine[] =>
    a.slice(from, to).map((text, index) => ({ kind: "same", text, before: from + index + 1, after: from + index + 1 + shift }));
  const lines = [...around(Math.max(0, head - 3), head, 0), ...middle];
  return [...lines, ...around(a.length - tail, Math.min(a.length, a.length - tail + 3), b.length - a.length)];
}

function between(a: string[], b: string[], start: number): DiffLine[] {
  const cut = (text: string, i: number): DiffLine => ({ kind: "cut", text, before: start + i + 1 });
  const add = (text: string, j: number): DiffLine => ({ kind: "add", text, after: start + j + 1 });
  if (a.length * b.length > MOST_LINES * MOST_LINES) return [...a.map(cut), ...b.map(add)];
  // Longest common subsequence: the number of common lines from (i, j) on.
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push({ kind: "same", text: a[i]!, before: start + ++i, after: start + ++j });
    else if (j >= b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) lines.push(cut(a[i]!, i++));
    else lines.push(add(b[j]!, j++));
  }
  return lines;
}

/** How many lines were added and cut. */
export function tally(lines: DiffLine[]): { added: number; cut: number } {
  const of = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { added: of("add"), cut: of("cut") };
}
