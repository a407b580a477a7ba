// Use by day and model. The gateway tells it by day or by model; by both is the difference of what was used
// since one day and since the next. Days are those of UTC, as the gateway counts them.

import type { Of } from "../../api/client";

export type Row = Of<"UsageRow">;
export type Measure = "dollars" | "tokens" | "calls";
export const RANGES = [7, 30, 90] as const;
export type Range = (typeof RANGES)[number];

const A_DAY = 86_400_000;

export const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** So many days up to today, oldest first. */
export const daysUntil = (now: number, count: number): string[] => Array.from({ length: count }, (_, back) => dayOf(now - (count - 1 - back) * A_DAY));

export function amount(row: Row, measure: Measure): number {
  if (measure === "tokens") return row.input_tokens + row.output_tokens;
  return row[measure];
}

/** Use by model in each of these days, from what was used since the start of each. */
export function byDay(since: readonly { day: string; rows: readonly Row[] }[]): Map<string, Row[]> {
  const sorted = since.toSorted((a, b) => a.day.localeCompare(b.day));
  return new Map(sorted.map(({ day, rows }, at) => [day, rows.map((row) => less(row, sorted[at + 1]?.rows.find(({ key }) => key === row.key))).filter(({ calls }) => calls > 0)]));
}

/** Never below nothing: between two questions somebody may have used more. */
function less(row: Row, after: Row | undefined): Row {
  if (!after) return row;
  const minus = (name: Exclude<keyof Row, "key">) => Math.max(0, row[name] - after[name]);
  return {
    key: row.key,
    calls: minus("calls"),
    estimated: minus("estimated"),
    input_tokens: minus("input_tokens"),
    cached_tokens: minus("cached_tokens"),
    output_tokens: minus("output_tokens"),
    dollars: minus("dollars"),
  };
}

export interface Series {
  name: string;
  /** One for each day. */
  values: readonly number[];
  total: number;
}

export interface Stack {
  days: readonly string[];
  /** Most used first, which is lowest in the chart; what is left over last. */
  series: readonly Series[];
  totals: readonly number[];
}

export const OTHERS = "Other models";
export const ALL = "All models";
const MOST_SERIES = 5;

/** Bars for these days. Until models are known for a day, it has one part for all of them. */
export function stack(days: readonly string[], totals: readonly Row[], models: ReadonlyMap<string, readonly Row[]>, measure: Measure): Stack {
  const whole = days.map((day) => sum(totals.filter(({ key }) => key === day).map((row) => amount(row, measure))));
  const names = [...new Set([...models.values()].flat().map(({ key }) => key))];
  const of = (name: string) => days.map((day) => sum((models.get(day) ?? []).filter(({ key }) => key === name).map((row) => amount(row, measure))));
  const found = names.map((name) => series(name || "No model", of(name))).sort((a, b) => b.total - a.total || a.name.localeCompare(b.name));
  const shown = found.slice(0, found.length > MOST_SERIES ? MOST_SERIES - 1 : MOST_SERIES);
  const rest = days.map((_, at) => tidy(whole[at]! - sum(shown.map(({ values }) => values[at]!))));
  const left = series(shown.length === 0 ? ALL : OTHERS, rest);
  return { days, series: left.total > 0 ? [...shown, left] : shown, totals: whole };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
const series = (name: string, values: readonly number[]): Series => ({ name, values, total: sum(values) });
/** What is left after taking parts off is not quite nothing. */
const tidy = (number: number) => (number < 1e-9 ? 0 : number);

/** Round numbers from 0 to at least the largest value, a few of them. */
export function ticks(largest: number): number[] {
  if (largest <= 0) return [0, 1];
  const rough = largest / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough - 1e-12)! * power;
  const count = Math.ceil(largest / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(6)));
}
