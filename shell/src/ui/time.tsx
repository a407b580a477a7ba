import { useEffect, useState } from "react";
import { ago, exactly } from "./format";

/** How long ago, kept current; the exact time on hover. */
export function Time({ at }: { at: number }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), now - at < 60_000 ? 5000 : 30_000);
    return () => clearInterval(timer);
  }, [at, now]);
  return (
    <time dateTime={new Date(at).toISOString()} title={exactly(at)}>
      {ago(at, now)}
    </time>
  );
}
