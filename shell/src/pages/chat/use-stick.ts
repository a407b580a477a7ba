// Whoever is at the end stays there while more comes; whoever is not is left alone, and told.

import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";

/** So close to the end counts as being there. */
const NEAR = 56;

export interface Stick {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  /** Not at the end, and whether something has come there since. */
  away: boolean;
  fresh: boolean;
  toEnd: () => void;
  /** Somebody unfolds something: what they look at must not be pushed away. */
  letGo: () => void;
}

/** `seq` is the last event that is shown; before there is any, the beginning is what to see. */
export function useStick(seq: number, any: boolean): Stick {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const [away, setAway] = useState(false);
  const [left, setLeft] = useState(seq);

  const holds = useRef(any);
  holds.current = any;

  const pin = useCallback(() => {
    const element = scroller.current;
    if (element && stuck.current && holds.current) element.scrollTop = element.scrollHeight;
  }, []);

  useLayoutEffect(pin, [pin, seq, any]);

  useEffect(() => {
    const [element, inner] = [scroller.current, content.current];
    if (!element || !inner) return;
    let [top, height] = [element.scrollTop, element.scrollHeight];
    const look = () => {
      const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
      // Only a move upwards lets go: what grows below, or shrinks, has not moved anybody.
      if (element.scrollTop < top - 1 && element.scrollHeight >= height) stuck.current = false;
      else if (element.scrollTop > top && atEnd) stuck.current = true;
      [top, height] = [element.scrollTop, element.scrollHeight];
      setAway(!atEnd && !stuck.current && holds.current);
    };
    element.addEventListener("scroll", look, { passive: true });
    const stop = onWayUp(element, () => (stuck.current = false));
    // Colours, pictures and the window itself change heights after the fact.
    const sizes = new ResizeObserver(pin);
    sizes.observe(inner);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      stop();
      sizes.disconnect();
    };
  }, [pin]);

  const latest = useRef(seq);
  latest.current = seq;
  useEffect(() => {
    if (away) setLeft(latest.current);
  }, [away]);

  const toEnd = useCallback(() => {
    stuck.current = true;
    setAway(false);
    pin();
  }, [pin]);
  const letGo = useCallback(() => {
    stuck.current = false;
    requestAnimationFrame(() => {
      const element = scroller.current;
      if (!element) return;
      const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
      stuck.current = atEnd;
      setAway(!atEnd);
    });
  }, []);
  return { scroller, content, away, fresh: away && seq > left, toEnd, letGo };
}

/**
 * Calls when somebody begins to go up. To be put back to the end with every word, before the move is far
 * enough to be seen as one, would hold them there.
 */
function onWayUp(element: HTMLElement, act: () => void): () => void {
  const going = new AbortController();
  const options = { passive: true, signal: going.signal };
  let finger = 0;
  const up = (is: boolean) => is && element.scrollTop > 0 && act();
  element.addEventListener("wheel", ({ deltaY }) => up(deltaY < 0), options);
  element.addEventListener("touchstart", ({ touches }) => (finger = touches[0]?.clientY ?? 0), options);
  element.addEventListener("touchmove", ({ touches }) => up((touches[0]?.clientY ?? 0) > finger + 4), options);
  element.addEventListener("keydown", ({ key, target }) => up(target === element && /^(ArrowUp|PageUp|Home)$/.test(key)), options);
  return () => going.abort();
}
