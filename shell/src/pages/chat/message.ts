// What the owner says, and the files that go with it.

const BELOW = "Attached files:";

/** The message as it is sent: the paths of its files stand below it. */
export function withFiles(text: string, paths: readonly string[]): string {
  if (paths.length === 0) return text;
  const list = [BELOW, ...paths.map((path) => `- ${path}`)].join("\n");
  return text.trim() === "" ? list : `${text}\n\n${list}`;
}

/** A message as it is shown: what was said, and the paths that stand below it. */
export function readMessage(message: string): { text: string; files: string[] } {
  const at = message.lastIndexOf(`${BELOW}\n- `);
  const list = at === 0 || message.slice(0, at).endsWith("\n\n") ? message.slice(at + BELOW.length + 1).split("\n") : [];
  if (at < 0 || list.length === 0 || !list.every((line) => line.startsWith("- "))) return { text: message, files: [] };
  return { text: message.slice(0, at).trimEnd(), files: list.map((line) => line.slice(2)) };
}

/** `a.png`, `a-2.png`, ...; without what a path would make of it. */
export function numbered(name: string, number: number): string {
  const plain = name.replaceAll(/[/\\\p{Cc}]/gu, "_").replace(/^\.+/, "") || "file";
  const [, stem = plain, ending = ""] = /^(.+?)((?:\.tar)?\.[^.]+)?$/.exec(plain) ?? [];
  return number === 1 ? plain : `${stem}-${number}${ending}`;
}
