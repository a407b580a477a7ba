// The last change of roles, and the time in which it may still be taken back by itself.

import { useEffect, useState } from "react";
import type { Of } from "../../api/client";
import { Badge } from "../../ui/basics";
import { Meter, Panel } from "../../ui/panel";
import { Time } from "../../ui/time";

const KINDS: Record<Of<"SwapKind">, string> = {
  swap: "live and dev changed places",
  rollback: "A swap was taken back",
  auto_rollback: "A swap was taken back by itself",
};

export function LastSwap({ swap }: { swap: Of<"SwapRecord"> }) {
  return (
    <Panel title="Last swap">
      <div className="row wraps">
        <Badge tone={swap.kind === "swap" ? "accent" : "warn"}>{KINDS[swap.kind] ?? swap.kind}</Badge>
        <span className="small soft">
          <Time at={swap.at} />
        </span>
      </div>
      {swap.reason && <p>{swap.reason}</p>}
      {swap.watched_until && <Watch from={swap.at} until={swap.watched_until} />}
      {swap.verdict && <p className="small soft">{swap.verdict}</p>}
    </Panel>
  );
}

function Watch({ from, until }: { from: number; until: number }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (now >= until) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [now, until]);
  if (now >= until) return null;
  const seconds = Math.ceil((until - now) / 1000);
  const words = `${seconds} s more`;
  return (
    <>
      <Meter label="Time in which it is watched" value={Math.min(now, until) - from} most={until - from} words={words} />
      <p className="small soft">It is watched for {words}, and taken back by itself if live does worse than before.</p>
    </>
  );
}
