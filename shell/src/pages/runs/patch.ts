// A patch of many files, as `patch -p1` reads it, in its files.

export interface FilePatch {
  path: string;
  change: "added" | "changed" | "removed";
  /** Its part of the patch. */
  diff: string;
}

const NOWHERE = "/dev/null";
const named = (line: string) => line.slice(4).replace(/\t.*$/, "").replace(/^[ab]\//, "");

/** Lines of hunks are counted: one that was cut may look like the name of the next file. */
export function filesOf(patch: string): FilePatch[] {
  const files: { before: string; after: string; lines: string[] }[] = [];
  let [before, after, cut, add] = ["", "", 0, 0];
  for (const line of patch.split("\n")) {
    const inside = cut > 0 || add > 0;
    if (inside) {
      if (!line.startsWith("+") && !line.startsWith("\\")) cut -= 1;
      if (!line.startsWith("-") && !line.startsWith("\\")) add -= 1;
      files.at(-1)?.lines.push(line);
    } else if (line.startsWith("--- ")) before = line;
    else if (line.startsWith("+++ ")) {
      after = line;
      files.push({ before: named(before), after: named(after), lines: [before, after] });
    } else if (line.startsWith("@@ ")) {
      const counts = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
      [cut, add] = [Number(counts?.[1] ?? 1), Number(counts?.[2] ?? 1)];
      files.at(-1)?.lines.push(line);
    }
  }
  return files.map(({ before, after, lines }) => ({
    path: after === NOWHERE ? before : after,
    change: before === NOWHERE ? "added" : after === NOWHERE ? "removed" : "changed",
    diff: lines.join("\n"),
  }));
}
