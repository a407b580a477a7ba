// A terminal that is shown in an element: the emulator, the connection to the shell, and their sizes.

import { useEffect, useRef, useState, type RefObject } from "react";
import { Link, type LinkState } from "./link";
import type { Emulator, Options } from "./xterm";

export interface Shell {
  state: LinkState;
  /** Ctrl is held for the next key. */
  held: boolean;
  hold: (held: boolean) => void;
  /** As if it had been typed. */
  type: (text: string | ((applicationCursor: boolean) => string)) => void;
  paste: (text: string) => void;
  focus: () => void;
  tryNow: () => void;
}

interface Parts {
  emulator: Emulator;
  link: Link;
  fit: () => void;
}

const encoder = new TextEncoder();
/** On a phone the keyboard would cover half of it. */
const mayFocus = () => matchMedia("(hover: hover)").matches;

/** Shows the shell in `host` for as long as it is there. `leave` is called by who wants to go elsewhere by keyboard. */
export function useShell(host: RefObject<HTMLDivElement | null>, id: string, options: Options & { shown: boolean; leave: () => void }): Shell {
  const [state, setState] = useState<LinkState>({ is: "connecting" });
  const [held, setHeld] = useState(false);
  const parts = useRef<Parts | null>(null);
  const wanted = useRef(options);
  wanted.current = options;

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    let here = true;
    let end = () => {};
    void import("./xterm").then(({ emulate }) => {
      if (!here) return;
      const made = assemble(element, id, emulate, { wanted, setState, setHeld });
      parts.current = made.parts;
      end = made.end;
      if (wanted.current.shown && mayFocus()) made.parts.emulator.terminal.focus();
    });
    return () => {
      here = false;
      parts.current = null;
      end();
    };
  }, [host, id]);

  const { fontSize, screenReader, shown } = options;
  useEffect(() => {
    const now = parts.current;
    if (!now) return;
    now.emulator.terminal.options.fontSize = fontSize;
    now.emulator.terminal.options.screenReaderMode = screenReader;
    now.fit();
  }, [fontSize, screenReader]);
  useEffect(() => {
    if (!shown) return;
    parts.current?.fit();
    if (mayFocus()) parts.current?.emulator.terminal.focus();
  }, [shown]);

  return {
    state,
    held,
    hold: (now) => {
      parts.current?.emulator.holdControl(now);
      setHeld(now);
    },
    type: (text) => {
      const terminal = parts.current?.emulator.terminal;
      terminal?.input(typeof text === "string" ? text : text(terminal.modes.applicationCursorKeysMode));
    },
    paste: (text) => parts.current?.emulator.terminal.paste(text),
    focus: () => parts.current?.emulator.terminal.focus(),
    tryNow: () => parts.current?.link.now(),
  };
}

interface Ties {
  wanted: RefObject<Options & { shown: boolean; leave: () => void }>;
  setState: (state: LinkState) => void;
  setHeld: (held: boolean) => void;
}

function assemble(element: HTMLElement, id: string, emulate: typeof import("./xterm").emulate, { wanted, setState, setHeld }: Ties): { parts: Parts; end: () => void } {
  const emulator = emulate(element, wanted.current, {
    input: (data) => link.send(encoder.encode(data)),
    released: () => setHeld(false),
    leave: () => wanted.current.leave(),
  });
  const { terminal } = emulator;
  /** What the shell was told last; null until its screen is drawn. */
  let told: { cols: number; rows: number } | null = null;
  let drawing = true;
  const fit = () => {
    const room = wanted.current.shown && !drawing ? emulator.room() : null;
    if (!room) return;
    if (room.cols !== terminal.cols || room.rows !== terminal.rows) terminal.resize(room.cols, room.rows);
    if (told?.cols === room.cols && told.rows === room.rows) return;
    link.resize(room);
    told = room;
  };
  const link = new Link(id, {
    blank: (size) => {
      drawing = size !== null;
      told = size ?? told;
      if (size) terminal.resize(size.cols, size.rows);
      terminal.write("\x1bc");
    },
    write: (bytes, shown) => terminal.write(bytes, shown),
    drawn: () => {
      drawing = false;
      fit();
    },
    state: setState,
  });
  const observer = new ResizeObserver(() => requestAnimationFrame(fit));
  observer.observe(element);
  const end = () => {
    observer.disconnect();
    link.close();
    emulator.dispose();
  };
  return { parts: { emulator, link, fit }, end };
}
