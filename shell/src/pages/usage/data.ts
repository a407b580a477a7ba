// What was used, as the gateway keeps it.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { ask, type Of } from "../../api/client";
import { byDay, daysUntil, startOf, type Range, type Row } from "./days";

type By = Of<"UsageBy">;
type Report = Of<"UsageReport">;
const A_MINUTE = 60_000;

const report = (by: By, since: number) => ask<Report>("/admin/sandboxes/usage", { by, since });

export function useUsage(by: By, since: number) {
  return useQuery({ queryKey: ["usage", by, since], queryFn: () => report(by, since), refetchInterval: A_MINUTE, placeholderData: (old) => (old?.by === by ? old : undefined) });
}

/**
 * Use by day and by model in the range. The days come first. What their models were is asked for once, since
 * the past stays as it was; of today it is asked again and again.
 */
export function useDays(range: Range) {
  const days = daysUntil(Date.now(), range);
  const [since, today] = [startOf(days[0]!), days.at(-1)!];
  const totals = useUsage("day", since);
  const models = useUsage("model", since);
  const now = useUsage("model", startOf(today));
  const rows = totals.data?.since === since ? totals.data.rows : undefined;
  // One model alone needs no more questions.
  const only = models.data?.rows.length === 1 ? models.data.rows[0]!.key : null;
  const past = useQuery({
    queryKey: ["usage", "split", since, today],
    enabled: rows !== undefined && models.data !== undefined && only === null,
    staleTime: Infinity,
    queryFn: async () => byDay(await fewAtOnce([...new Set([...rows!.map(({ key }) => key), today])], async (day) => ({ day, rows: (await report("model", startOf(day))).rows }))),
  });
  const split = useMemo((): ReadonlyMap<string, readonly Row[]> => {
    if (only !== null) return new Map((rows ?? []).map((row) => [row.key, [{ ...row, key: only }]]));
    if (!past.data) return new Map();
    return new Map([...past.data, ...(now.data ? [[today, now.data.rows] as const] : [])]);
  }, [only, rows, past.data, now.data, today]);
  return { days, since, totals, models, split };
}

const AT_ONCE = 6;

async function fewAtOnce<In, Out>(all: readonly In[], act: (one: In) => Promise<Out>): Promise<Out[]> {
  const [done, waiting]: [Out[], In[]] = [[], [...all]];
  const work = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) done.push(await act(one));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return done;
}

export function useCalls() {
  return useInfiniteQuery({
    queryKey: ["usage", "calls"],
    queryFn: ({ pageParam }) => ask<Of<"CallPage">>("/admin/sandboxes/calls", { limit: 25, before: pageParam }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
}

export function useProviders() {
  return useQuery({ queryKey: ["providers"], queryFn: () => ask<Of<"ProviderList">>("/admin/sandboxes/providers"), refetchInterval: A_MINUTE });
}
