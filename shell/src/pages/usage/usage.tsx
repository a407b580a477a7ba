// Spending: what models cost, by day and model, and on what.

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { ask, get, type Of } from "../../api/client";
import { gateway } from "../../api/mount";
import { go, to } from "../../app/router";
import { Choice, Empty, LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { dollars, short } from "../../ui/format";
import { PageFrame } from "../../ui/page";
import { Panel } from "../../ui/panel";
import { Budgets } from "./budgets";
import { Chart } from "./chart";
import { useDays } from "./data";
import { amount, RANGES, stack, type Measure, type Range } from "./days";
import { Calls, Groups, type Grouping } from "./tables";
import css from "./usage.module.css";

const MEASURES = ["dollars", "tokens", "calls"] as const;
const GROUPINGS = ["model", "run", "conversation", "day"] as const;
const one = <T extends string>(all: readonly T[], wanted: string | null): T => all.find((each) => each === wanted) ?? all[0]!;

export default function Page({ query }: { query: URLSearchParams }) {
  const range = RANGES.find((days) => String(days) === query.get("days")) ?? 30;
  const measure = one(MEASURES, query.get("of"));
  const by = one(GROUPINGS, query.get("by"));
  const change = (next: Record<string, string>) => go(to("usage", "", { ...Object.fromEntries(query), ...next }), "replace");
  const { days, since, totals, models, split } = useDays(range);
  const bars = useMemo(() => stack(days, totals.data?.rows ?? [], split, measure), [days.join(), totals.data, split, measure]);
  const titles = useTitles();
  const total = totals.data?.total;
  const never = totals.data && total?.calls === 0;
  return (
    <PageFrame
      title="Spending"
      acts={<Choice label="How far back" value={String(range)} options={RANGES.map((days) => ({ value: String(days), label: `${days} d`, title: `${days} days` }))} onChange={(next) => change({ days: next })} />}
    >
      {totals.error && !totals.data && <Trouble error={totals.error} retry={() => void totals.refetch()} />}
      {!totals.data && !totals.error && <Waiting />}
      {never && <None range={range} />}
      {total && !never && (
        <>
          <Figures total={total} days={range} models={models.data?.rows.length ?? 0} />
          <Panel
            title="By day"
            acts={<Choice label="What to count" value={measure} options={MEASURES.map((value) => ({ value, label: { dollars: "Cost", tokens: "Tokens", calls: "Calls" }[value] }))} onChange={(next) => change({ of: next })} />}
          >
            <Chart stack={bars} measure={measure} />
          </Panel>
          <Panel
            title="In numbers"
            plain
            acts={<Choice label="By what" value={by} options={GROUPINGS.map((value) => ({ value, label: { model: "Model", run: "Run", conversation: "Conversation", day: "Day" }[value] }))} onChange={(next: Grouping) => change({ by: next })} />}
          >
            <Groups by={by} since={since} titles={titles} />
          </Panel>
        </>
      )}
      <Budgets />
      {total && <Calls />}
    </PageFrame>
  );
}

function Figures({ total, days, models }: { total: Of<"UsageRow">; days: Range; models: number }) {
  const cached = total.input_tokens > 0 ? Math.round((total.cached_tokens / total.input_tokens) * 100) : 0;
  const tokens: Measure = "tokens";
  return (
    <dl className={css.figures}>
      <div>
        <dt>Spent in {days} days</dt>
        <dd>{dollars(total.dollars)}</dd>
        <dd className="small soft">{total.dollars > 0 && total.dollars / days < 0.0001 ? "under $0.0001" : dollars(total.dollars / days)} a day</dd>
      </div>
      <div>
        <dt>Tokens</dt>
        <dd>{short(amount(total, tokens))}</dd>
        <dd className="small soft">{cached} % of the input was cached</dd>
      </div>
      <div>
        <dt>Calls</dt>
        <dd>{total.calls.toLocaleString("en")}</dd>
        <dd className="small soft">of {models} {models === 1 ? "model" : "models"}</dd>
      </div>
    </dl>
  );
}

function None({ range }: { range: number }) {
  return (
    <Empty
      icon="usage"
      title={`No model was called in ${range} days`}
      action={
        <LinkButton icon="external" href={gateway("/admin/sandboxes/models").href}>
          Providers
        </LinkButton>
      }
    >
      When you talk to the agent, start a run, or a program in a sandbox asks a model, what it cost is here, by day and model.
    </Empty>
  );
}

function Waiting() {
  return (
    <div className="column" role="status" aria-label="Loading">
      <Skeleton height={84} />
      <Skeleton height={360} />
      <Skeleton height={200} />
    </div>
  );
}

/** What conversations and runs are called, as far as they are still there. */
function useTitles(): ReadonlyMap<string, string> {
  const conversations = useQuery({ queryKey: ["conversations"], queryFn: () => get<Of<"ConversationList">>("/conductor/conversations") });
  const runs = useQuery({ queryKey: ["runs"], queryFn: () => ask<Of<"RunList">>("/admin/sandboxes/runs") });
  return useMemo(() => new Map([...(conversations.data?.conversations ?? []), ...(runs.data?.runs ?? [])].map(({ id, title }) => [id, title || id])), [conversations.data, runs.data]);
}
