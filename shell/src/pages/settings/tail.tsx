// The log of a process as it is written.

import { useEffect, useRef, useState } from "react";
import type { Of } from "../../api/client";
import { Trouble } from "../../ui/basics";
import { follow } from "../../ui/follow";
import css from "./settings.module.css";

type Line = Of<"LogLine">;
const MOST = 500;

/** The last lines, and what is added to them. */
function useTail(name: string): { lines: readonly Line[]; error: unknown } {
  const [tail, setTail] = useState<{ lines: readonly Line[]; error: unknown }>({ lines: [], error: null });
  useEffect(() => {
    const control = new AbortController();
    let [lines, frame]: [Line[], number] = [[], 0];
    setTail({ lines: [], error: null });
    const hear = (line: Line) => {
      lines = [...lines.slice(1 - MOST), line];
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => setTail({ lines, error: null }));
    };
    follow<Line>({ path: `/supervisor/processes/${encodeURIComponent(name)}/log`, query: () => ({ follow: true, after: lines.at(-1)?.seq }), signal: control.signal, hear }).catch((error: unknown) => setTail({ lines, error }));
    return () => {
      control.abort();
      cancelAnimationFrame(frame);
    };
  }, [name]);
  return tail;
}

export function Tail({ name }: { name: string }) {
  const { lines, error } = useTail(name);
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  const scrolled = ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }: React.UIEvent) => (atEnd.current = scrollTop + clientHeight > scrollHeight - 24);
  if (error !== null) return <Trouble error={error} />;
  return (
    <pre ref={box} className={css.tail} tabIndex={0} role="log" aria-label={`Log of ${name}`} aria-live="off" onScroll={scrolled}>
      {lines.length === 0 && <span className={css.said}>It has written nothing.</span>}
      {lines.map((line) => (
        <span key={line.seq} className={line.stream === "supervisor" ? css.said : undefined} data-stream={line.stream}>
          {plain(line.text)}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

/** Without the colours of terminals. */
const plain = (text: string) => text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "");
