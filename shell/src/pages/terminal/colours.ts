// The colours of a terminal, from the theme. What programs call red is what this desktop calls bad.

import type { ITheme } from "@xterm/xterm";
import css from "./terminal.module.css";

const NAMES = [
  "background",
  "foreground",
  "cursor",
  "cursorAccent",
  "selectionBackground",
  "black",
  "red",
  "green",
  "yellow",
  "blue",
  "magenta",
  "cyan",
  "white",
  "brightBlack",
  "brightRed",
  "brightGreen",
  "brightYellow",
  "brightBlue",
  "brightMagenta",
  "brightCyan",
  "brightWhite",
] as const satisfies readonly (keyof ITheme)[];

/**
 * Tells the colours now and whenever they change: by the theme, by the time of day, or because somebody
 * edits theme.css. Variables are only colours once something has them, so there is an element for each;
 * that it changes is told by a transition that nobody sees.
 */
export function watchColours(host: HTMLElement, tell: (theme: ITheme) => void): () => void {
  const probes = document.createElement("div");
  probes.className = css.probes!;
  probes.setAttribute("aria-hidden", "true");
  for (const name of NAMES) {
    const probe = document.createElement("i");
    probe.style.color = `var(--term-${name})`;
    probes.append(probe);
  }
  host.append(probes);
  const read = () => {
    const colours = [...probes.children].map((probe) => getComputedStyle(probe).color);
    tell(Object.fromEntries(NAMES.map((name, index) => [name, hex(colours[index]!)])));
  };
  let waiting = 0;
  const changed = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(read);
  };
  probes.addEventListener("transitionend", changed);
  read();
  return () => {
    cancelAnimationFrame(waiting);
    probes.remove();
  };
}

/** Mixed colours come as `color(srgb 0.1 0.2 0.3)`, which xterm.js does not read. */
export function hex(colour: string): string {
  const numbers = colour.match(/[\d.]+(?:e-?\d+)?/g)?.map(Number) ?? [];
  const scale = colour.startsWith("color(") ? 255 : 1;
  const [red = 0, green = 0, blue = 0] = numbers.map((number) => Math.round(number * scale));
  return `#${[red, green, blue].map((part) => Math.min(255, part).toString(16).padStart(2, "0")).join("")}`;
}
