// For screen readers: each message when it is whole, and how a turn ended. Never piece by piece.

import { useEffect, useRef, useState } from "react";
import type { View } from "./view";

const LONGEST = 1500;

export function Announcer({ view, ready }: { view: View; ready: boolean }) {
  const [words, setWords] = useState("");
  const known = useRef<number | null>(null);
  const turn = view.turns.at(-1);
  useEffect(() => {
    if (!ready) return;
    const whole = turn?.steps.findLast((step) => step.kind === "text" && !step.open);
    const ended = turn?.ended && turn.ended.reason !== "done" ? turn.last : 0;
    const newest = Math.max(whole?.seq ?? 0, ended);
    if (known.current !== null && newest > known.current) {
      if (ended > known.current) setWords("The turn has ended early.");
      else if (whole?.kind === "text") setWords(whole.text.replaceAll(/[*_`#>|]/g, "").slice(0, LONGEST));
    }
    known.current = Math.max(known.current ?? 0, newest);
  }, [turn, ready]);
  useEffect(() => {
    // Said once. Whoever reads the page finds the message in its place, and not here again.
    const timer = setTimeout(() => setWords(""), 1000);
    return () => clearTimeout(timer);
  }, [words]);
  return (
    <p className="unseen" aria-live="polite">
      {words}
    </p>
  );
}
