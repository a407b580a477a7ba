// The same in numbers: by day, by model, by run, by conversation, and the calls one by one.

import { to } from "../../app/router";
import type { Of } from "../../api/client";
import { Badge, Button, Skeleton, Trouble } from "../../ui/basics";
import { count, dollars, duration, short } from "../../ui/format";
import { Panel } from "../../ui/panel";
import { Time } from "../../ui/time";
import { useCalls, useUsage } from "./data";
import { dayName } from "./chart";
import type { Row } from "./days";
import css from "./usage.module.css";

export type Grouping = "day" | "model" | "run" | "conversation";
const HEADS: Record<Grouping, { head: string; none: string }> = {
  day: { head: "Day (UTC)", none: "No day" },
  model: { head: "Model", none: "No model" },
  run: { head: "Run", none: "Not of a run" },
  conversation: { head: "Conversation", none: "Not of a conversation" },
};

export function Groups({ by, since, titles }: { by: Grouping; since: number; titles: ReadonlyMap<string, string> }) {
  const { data, error, refetch } = useUsage(by, since);
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton height={140} />;
  return (
    <div className={css.table} role="region" tabIndex={0} aria-label={`Use by ${by}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">{HEADS[by].head}</th>
            <th scope="col">Calls</th>
            <th scope="col">Input</th>
            <th scope="col">of it cached</th>
            <th scope="col">Output</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {data.rows.slice(0, 100).map((row) => (
            <tr key={row.key}>
              <th scope="row">
                <Named by={by} row={row} titles={titles} />
              </th>
              <td>{row.calls.toLocaleString("en")}</td>
              <td>{short(row.input_tokens)}</td>
              <td>{short(row.cached_tokens)}</td>
              <td>{short(row.output_tokens)}</td>
              <td>{dollars(row.dollars)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Named({ by, row: { key, estimated }, titles }: { by: Grouping; row: Row; titles: ReadonlyMap<string, string> }) {
  const words = key === "" ? HEADS[by].none : by === "day" ? dayName(key) : (titles.get(key) ?? key);
  const link = key !== "" && (by === "run" ? to("runs", key) : by === "conversation" ? to("chat", key) : null);
  return (
    <span className="row">
      <span className="cut-off">{link ? <a href={link}>{words}</a> : words}</span>
      {estimated > 0 && <Badge title="Nobody saw the end of these, so what was put aside for them counts.">{count(estimated, "estimate")}</Badge>}
    </span>
  );
}

export function Calls() {
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useCalls();
  const calls = data?.pages.flatMap((page) => page.calls) ?? [];
  return (
    <Panel title="Last calls" about="Every call of a model, newest first." plain>
      {error && !data && <Trouble error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height={180} />}
      {data && calls.length === 0 && <p className={css.quiet}>Nobody has called a model yet.</p>}
      {calls.length > 0 && (
        <div className={css.table} role="region" tabIndex={0} aria-label="Table of the last calls">
          <table>
            <thead>
              <tr>
                <th scope="col">Model</th>
                <th scope="col">When</th>
                <th scope="col">For</th>
                <th scope="col">Tokens</th>
                <th scope="col">Took</th>
                <th scope="col">Cost</th>
              </tr>
            </thead>
            <tbody>
              {calls.map((call) => (
                <Call key={call.id} call={call} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {hasNextPage && (
        <div className={css.more}>
          <Button small busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Older calls
          </Button>
        </div>
      )}
    </Panel>
  );
}

function Call({ call }: { call: Of<"CallInfo"> }) {
  const whom = call.run ? <a href={to("runs", call.run)}>a run</a> : call.conversation ? <a href={to("chat", call.conversation)}>a conversation</a> : (call.sandbox ?? "a program");
  return (
    <tr>
      <th scope="row">
        <span className="row">
          <span className="cut-off" title={`${call.provider}, ${call.path}`}>
            {call.model || call.path}
          </span>
          {call.state === "failed" && <Badge tone="bad">{call.status ?? "Failed"}</Badge>}
          {call.state === "open" && <Badge tone="accent">Under way</Badge>}
          {call.state === "refused" && <Badge tone="bad">{`Refused: ${call.verdict}${call.times ? `, ${call.times} times` : ""}`}</Badge>}
        </span>
      </th>
      <td>
        <Time at={call.at} />
      </td>
      <td>{whom}</td>
      <td>
        {short(call.input_tokens)} in, {short(call.output_tokens)} out
      </td>
      <td>{call.took_ms ? duration(call.took_ms) : "–"}</td>
      <td>{dollars(call.dollars)}</td>
    </tr>
  );
}
