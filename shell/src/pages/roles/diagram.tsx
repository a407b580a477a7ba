// What a swap is, in a picture: two sandboxes that stay where they are, and two addresses that change places.

import { useEffect, useRef, useState } from "react";
import type { Of } from "../../api/client";
import { Button } from "../../ui/basics";
import css from "./diagram.module.css";

type Sandbox = Of<"SandboxInfo">;

const PREVIEW = 2600;

/** The one that was made first is on the left, whichever role it has: what moves is the addresses. */
export function Diagram({ live, dev }: { live: Sandbox | undefined; dev: Sandbox | undefined }) {
  const [preview, setPreview] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const boxes = [live, dev].filter((box) => box !== undefined).sort((a, b) => a.created_at - b.created_at || a.id.localeCompare(b.id));
  const liveLeft = boxes[0]?.id === live?.id;
  const swapped = dev !== undefined && preview ? !liveLeft : liveLeft;
  const show = () => {
    clearTimeout(timer.current);
    setPreview(true);
    timer.current = setTimeout(() => setPreview(false), PREVIEW);
  };
  return (
    <figure className={css.figure}>
      <svg viewBox="0 0 520 176" role="img" aria-label={told(live, dev)} className={css.picture}>
        <Box x={20} box={boxes[0]} />
        <Box x={280} box={boxes[1]} />
        <Pointer at={swapped ? "left" : "right"} name="/" says="live" main />
        {dev && <Pointer at={swapped ? "right" : "left"} name="/dev/" says="dev" />}
      </svg>
      <figcaption className={css.caption}>
        <p>
          {preview
            ? "After a swap, what was dev answers at /, and what was live answers at /dev/, so that you can go back."
            : dev
              ? "A swap moves the addresses and not the sandboxes: nothing is copied, so it takes no time."
              : "dev is a copy of live to try things on. Nothing there touches live until you swap."}
        </p>
        {dev && (
          <Button small icon="play" onClick={show} aria-pressed={preview}>
            Show a swap
          </Button>
        )}
      </figcaption>
    </figure>
  );
}

const told = (live: Sandbox | undefined, dev: Sandbox | undefined) =>
  `The address / leads to ${live ? `the sandbox ${live.id}` : "nothing"}. ${dev ? `The address /dev/ leads to the sandbox ${dev.id}.` : "There is no dev."}`;

function Box({ x, box }: { x: number; box: Sandbox | undefined }) {
  return (
    <g transform={`translate(${x} 84)`} className={css.box} data-empty={!box || undefined}>
      <rect width="220" height="76" rx="12" />
      <text x="110" y="34" className={css.name}>
        {box ? short(box.id) : "No dev yet"}
      </text>
      <text x="110" y="56" className={css.state}>
        {box ? `a sandbox, ${box.state}` : "a copy of live would be here"}
      </text>
    </g>
  );
}

const short = (id: string) => (id.length > 20 ? `${id.slice(0, 19)}…` : id);

function Pointer({ at, name, says, main }: { at: "left" | "right"; name: string; says: string; main?: boolean }) {
  return (
    <g className={css.pointer} data-main={main || undefined} style={{ transform: `translateX(${at === "left" ? 130 : 390}px)` }}>
      <rect x="-62" y="8" width="124" height="36" rx="18" />
      <text x="0" y="31">
        <tspan className={css.address}>{name}</tspan> {says}
      </text>
      <path d="M0 44v28m-6-7 6 7 6-7" />
    </g>
  );
}
