// xterm.js as this desktop uses it. Loaded when the first terminal is shown.

import { FitAddon } from "@xterm/addon-fit";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { address } from "../../api/mount";
import { copyText } from "../../ui/clipboard";
import { say, sayError } from "../../ui/overlay";
import { watchColours } from "./colours";
import { control, localPort } from "./keys";

export interface Options {
  fontSize: number;
  screenReader: boolean;
}

export interface Emulator {
  terminal: Terminal;
  /** The size that fits, or null while there is no room. */
  room: () => { cols: number; rows: number } | null;
  /** With Ctrl held for the next key, by a button. */
  holdControl: (held: boolean) => void;
  dispose: () => void;
}

/** Above what the supervisor keeps, there is what came while this page was open. */
const SCROLLBACK = 10_000;

export function emulate(host: HTMLElement, options: Options, on: { input: (data: string) => void; released: () => void; leave: () => void }): Emulator {
  const terminal = new Terminal({
    fontFamily: getComputedStyle(host).fontFamily,
    fontSize: options.fontSize,
    lineHeight: 1.2,
    scrollback: SCROLLBACK,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    // Programs choose colours for a ground that they do not know.
    minimumContrastRatio: 4.5,
    macOptionIsMeta: true,
    screenReaderMode: options.screenReader,
    linkHandler: { activate: (_, uri) => openLink(uri) },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(new WebLinksAddon((_, uri) => openLink(uri)));
  terminal.open(host);
  const unwatch = watchColours(host, (theme) => (terminal.options.theme = theme));
  let held = false;
  terminal.onData((data) => {
    on.input(held ? control(data) : data);
    if (held) on.released();
    held = false;
  });
  terminal.onBinary(on.input);
  terminal.attachCustomKeyEventHandler((event) => ownKeys(event, terminal, on.leave));
  return {
    terminal,
    room: () => {
      const size = fit.proposeDimensions();
      return size && size.cols > 1 && size.rows > 0 ? { cols: size.cols, rows: size.rows } : null;
    },
    holdControl: (now) => (held = now),
    dispose: () => {
      unwatch();
      terminal.dispose();
    },
  };
}

/** Keys that are ours and not the shell's: false keeps them from it. */
function ownKeys(event: KeyboardEvent, terminal: Terminal, leave: () => void): boolean {
  if (!event.ctrlKey || !event.shiftKey || event.altKey) return true;
  if (event.code === "KeyV") return false; // the browser pastes
  if (event.code === "KeyC") {
    event.preventDefault();
    if (event.type === "keydown" && terminal.hasSelection()) void copyText(terminal.getSelection()).then(() => say("Copied"), sayError);
    return false;
  }
  if (event.key === "ArrowUp") {
    event.preventDefault();
    if (event.type === "keydown") leave();
    return false;
  }
  return true;
}

/** A server that a program names as its own is one of the sandbox, and not of the machine in front of you. */
function openLink(uri: string): void {
  const local = localPort(uri);
  const target = local ? address(`/ports/${local.port}${local.path}`).href : uri;
  if (/^https?:/.test(target)) window.open(target, "_blank", "noopener,noreferrer");
}
