// A bar for each day, stacked by model. Arrow keys go from day to day; what they find is said and shown in
// the legend, which has its place from the start.

import { useEffect, useRef, useState } from "react";
import { dollars, short } from "../../ui/format";
import css from "./usage.module.css";
import { ticks, type Measure, type Stack } from "./days";

const HEIGHT = 220;
const LEFT = 58;
const WIDEST = 44;
const BELOW = 24;
const ABOVE = 8;

export const shown = (value: number, measure: Measure) => (measure === "dollars" ? dollars(value) : short(value));
export const dayName = (day: string) => new Date(`${day}T00:00:00Z`).toLocaleDateString("en", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });

export function Chart({ stack, measure }: { stack: Stack; measure: Measure }) {
  const [at, setAt] = useState<number | null>(null);
  const [width, frame] = useWidth();
  const day = at === null ? null : Math.min(at, stack.days.length - 1);
  const press = (event: React.KeyboardEvent) => {
    const last = stack.days.length - 1;
    const to = { ArrowLeft: (day ?? last + 1) - 1, ArrowRight: (day ?? -1) + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") setAt(null);
    if (to === undefined) return;
    event.preventDefault();
    setAt(Math.min(last, Math.max(0, to)));
  };
  const point = ({ clientX, currentTarget }: React.PointerEvent) => {
    const inside = clientX - currentTarget.getBoundingClientRect().left - LEFT;
    const found = Math.floor((inside / (width - LEFT)) * stack.days.length);
    setAt(found >= 0 && found < stack.days.length ? found : null);
  };
  return (
    <figure className={css.chart}>
      <div
        ref={frame}
        className={css.bars}
        role="group"
        tabIndex={0}
        aria-label="Use by day. Arrow keys go from day to day."
        onKeyDown={press}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => setAt(null)}
        onBlur={() => setAt(null)}
      >
        {width > 0 && <Bars stack={stack} measure={measure} width={width} day={day} />}
      </div>
      <Legend stack={stack} measure={measure} day={day} />
      <p className="unseen" aria-live="polite">
        {day !== null && `${dayName(stack.days[day]!)}: ${shown(stack.totals[day]!, measure)}${stack.series.filter(({ values }) => values[day]).map(({ name, values }) => `, ${name} ${shown(values[day]!, measure)}`).join("")}`}
      </p>
    </figure>
  );
}

function useWidth() {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!frame.current) return;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  return [width, frame] as const;
}

function Bars({ stack, measure, width, day }: { stack: Stack; measure: Measure; width: number; day: number | null }) {
  const scale = ticks(Math.max(...stack.totals));
  const most = scale.at(-1)!;
  const y = (value: number) => ABOVE + (HEIGHT - ABOVE - BELOW) * (1 - value / most);
  const step = (width - LEFT) / stack.days.length;
  const bar = Math.max(1, Math.min(WIDEST, step * 0.78));
  const every = Math.ceil(64 / step);
  return (
    <svg width={width} height={HEIGHT} aria-hidden="true">
      {scale.map((value) => (
        <g key={value}>
          <line x1={LEFT} x2={width} y1={y(value)} y2={y(value)} className={css.line} />
          <text x={LEFT - 8} y={y(value) + 4} textAnchor="end">
            {shown(value, measure)}
          </text>
        </g>
      ))}
      {stack.days.map((name, at) => {
        let top = 0;
        const x = LEFT + at * step;
        // The last one would be cut off by the edge.
        const atEdge = at === stack.days.length - 1 && step < 60;
        return (
          <g key={name} className={css.day} data-away={(day !== null && day !== at) || undefined}>
            {stack.series.map(({ name: model, values }, index) => {
              const from = top;
              top += values[at]!;
              // A line of the ground between two parts tells them apart without their colours.
              const height = Math.max(0, y(from) - y(top) - (from > 0 ? 1 : 0));
              return values[at]! > 0 && <rect key={model} x={x + (step - bar) / 2} width={bar} y={y(top)} height={Math.max(1, height)} data-series={index} rx={Math.min(2, bar / 6)} />;
            })}
            {(stack.days.length - 1 - at) % every === 0 && (
              <text x={atEdge ? width : x + step / 2} y={HEIGHT - 6} textAnchor={atEdge ? "end" : "middle"}>
                {new Date(`${name}T00:00:00Z`).toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" })}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** Totals of the range, or of the day that is pointed at. */
function Legend({ stack, measure, day }: { stack: Stack; measure: Measure; day: number | null }) {
  return (
    <figcaption className={css.legend}>
      <p className={css.when}>
        <strong>{day === null ? `Last ${stack.days.length} days` : dayName(stack.days[day]!)}</strong>
        <span>{shown(day === null ? stack.totals.reduce((a, b) => a + b, 0) : stack.totals[day]!, measure)}</span>
      </p>
      <ul>
        {stack.series.map(({ name, values, total }, index) => (
          <li key={name}>
            <span className={css.swatch} data-series={index} />
            <span className="grow cut-off" title={name}>
              {name}
            </span>
            <span className={css.number}>{shown(day === null ? total : values[day]!, measure)}</span>
          </li>
        ))}
      </ul>
    </figcaption>
  );
}
