// Keys that a touch keyboard does not have, and links to servers of the sandbox.

/** What Ctrl with this character sends, if it sends anything else. */
export function control(character: string): string {
  const code = character.toUpperCase().charCodeAt(0);
  if (character.length !== 1) return character;
  // `@` to `_`, with the letters among them.
  if (code >= 64 && code < 96) return String.fromCharCode(code & 31);
  return { " ": "\0", "?": "\x7f", "/": "\x1f", "-": "\x1f" }[character] ?? character;
}

export type Arrow = "A" | "B" | "C" | "D";

/** Full-screen programs may have asked for other codes. */
export const arrow = (which: Arrow, application: boolean) => `\x1b${application ? "O" : "["}${which}`;

export interface ExtraKey {
  label: string;
  name: string;
  /** What it sends, or which arrow it is. */
  sends?: string;
  arrow?: Arrow;
}

export const EXTRA_KEYS: readonly ExtraKey[] = [
  { label: "Esc", name: "Esc", sends: "\x1b" },
  { label: "Tab", name: "Tab", sends: "\t" },
  { label: "↑", name: "Up", arrow: "A" },
  { label: "↓", name: "Down", arrow: "B" },
  { label: "←", name: "Left", arrow: "D" },
  { label: "→", name: "Right", arrow: "C" },
  { label: "|", name: "Pipe", sends: "|" },
  { label: "/", name: "Slash", sends: "/" },
  { label: "-", name: "Dash", sends: "-" },
  { label: "~", name: "Tilde", sends: "~" },
];

/** The port of this sandbox that a link means, and the path there; null for the world outside. */
export function localPort(uri: string): { port: number; path: string } | null {
  let url: URL;
  try {
    url = new URL(uri);
  } catch {
    return null;
  }
  if (!/^(localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\])$/.test(url.hostname)) return null;
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  return { port, path: url.pathname + url.search + url.hash };
}
