// Keys that work everywhere: Ctrl K for the palette, and `g` with a letter for each page.

import { useEffect, useRef } from "react";
import { PAGES } from "./pages";
import { go, to } from "./router";

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest(".xterm, .cm-editor") !== null);

export function useKeys({ palette }: { palette: () => void }): void {
  const open = useRef(palette);
  open.current = palette;
  useEffect(() => {
    let pressedG = 0;
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open.current();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (event.key === "?") open.current();
      if (event.key === "g") {
        pressedG = event.timeStamp;
        return;
      }
      const page = PAGES.find(({ key }) => key === event.key);
      if (page && event.timeStamp - pressedG < 1200) go(to(page.id));
      pressedG = 0;
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
