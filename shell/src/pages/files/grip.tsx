// The edge between the tree and what is open.

import { useState } from "react";
import css from "./files.module.css";

const KEY = "nacre.files.tree";
const USUAL = 300;
const clamp = (width: number) => Math.min(Math.max(width, 200), 640);

export function useTreeWidth(): [number, (width: number) => void] {
  const [width, setWidth] = useState(() => {
    try {
      return clamp(Number(localStorage.getItem(KEY)) || USUAL);
    } catch {
      return USUAL;
    }
  });
  const choose = (next: number) => {
    setWidth(clamp(next));
    try {
      localStorage.setItem(KEY, String(clamp(next)));
    } catch {
      // A browser that keeps nothing: it holds until the page is left.
    }
  };
  return [width, choose];
}

export function Grip({ width, onWidth }: { width: number; onWidth: (width: number) => void }) {
  const drag = (event: React.PointerEvent) => {
    const [start, element] = [event.clientX, event.currentTarget];
    element.setPointerCapture(event.pointerId);
    const move = (moved: Event) => onWidth(width + (moved as PointerEvent).clientX - start);
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", () => element.removeEventListener("pointermove", move), { once: true });
  };
  const press = (event: React.KeyboardEvent) => {
    if (event.key === "ArrowLeft") onWidth(width - 24);
    if (event.key === "ArrowRight") onWidth(width + 24);
  };
  return <div className={css.grip} role="separator" aria-label="Width of the tree" aria-orientation="vertical" aria-valuenow={width} aria-valuemin={200} aria-valuemax={640} tabIndex={0} onPointerDown={drag} onKeyDown={press} />;
}
