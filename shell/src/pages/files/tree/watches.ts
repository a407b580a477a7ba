import { useEffect, useState, useSyncExternalStore } from "react";

const coarse = matchMedia("(pointer: coarse)");

function watchPointer(changed: () => void): () => void {
  coarse.addEventListener("change", changed);
  return () => coarse.removeEventListener("change", changed);
}

/** Whether lines have to be high enough for a finger. */
export const useCoarse = (): boolean => useSyncExternalStore(watchPointer, () => coarse.matches);

const OFTEN = 15_000;

/** The time, for ages that are shown; it stands still while there are none. */
export function useNow(running: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!running) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), OFTEN);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}
