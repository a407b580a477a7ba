// What went out, newest first.

import { Badge, Button, Choice, Input, Skeleton, Trouble } from "../../ui/basics";
import { count, duration, size } from "../../ui/format";
import { Panel } from "../../ui/panel";
import { Time } from "../../ui/time";
import { to } from "../../app/router";
import { useQueryClient } from "@tanstack/react-query";
import { useLog, type Role } from "./data";
import { often, pick, WORDS, type Entry, type Wanted } from "./log";
import css from "./network.module.css";

const CHOICES: readonly { value: Wanted; label: string }[] = [
  { value: "all", label: "All" },
  { value: "made", label: "Made" },
  { value: "refused", label: "Refused" },
  { value: "failed", label: "Failed" },
];

export function Log({ role, wanted, host, change }: { role: Role; wanted: Wanted; host: string; change: (next: { verdict?: string; host?: string }) => void }) {
  const client = useQueryClient();
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useLog(role, wanted === "refused");
  const all = data?.pages.flatMap((page) => page.records) ?? [];
  const records = pick(all, wanted, host);
  const lost = data?.pages[0]?.lost ?? 0;
  const further = (data?.pages.length ?? 1) > 1;
  const newest = () => void client.resetQueries({ queryKey: ["egress-log", role] });
  return (
    <Panel
      title="What went out"
      about={further ? "You look further back, so it stands still." : "As it happens."}
      plain
      acts={
        <>
          <Choice label="How they ended" value={wanted} options={CHOICES} onChange={(verdict) => change({ verdict })} />
          <Input className={css.filter} type="search" placeholder="Filter by host" aria-label="Filter by host" value={host} onChange={(event) => change({ host: event.target.value })} />
        </>
      }
    >
      {error && !data && <Trouble error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height={240} />}
      {data && records.length === 0 && <p className={css.quiet}>{all.length === 0 ? "Nothing has gone out yet." : "None of these fits."}</p>}
      {records.length > 0 && (
        <ul className={css.log} aria-label="Connections">
          {records.map((record) => (
            <Line key={record.id} record={record} />
          ))}
        </ul>
      )}
      {(hasNextPage || further || lost > 0) && (
        <div className={css.foot}>
          {hasNextPage && (
            <Button small busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Older
            </Button>
          )}
          {further && (
            <Button small look="quiet" onClick={newest}>
              Back to the newest
            </Button>
          )}
          {lost > 0 && <span className="small soft">{count(lost, "record was", "records were")} not kept: the disk was too slow.</span>}
        </div>
      )}
    </Panel>
  );
}

function Line({ record }: { record: Entry }) {
  const { words, tone, means } = WORDS[record.verdict] ?? WORDS.unknown;
  return (
    <li className={css.record}>
      <span className={css.verdict}>
        <Badge tone={tone} title={means}>
          {words}
        </Badge>
      </span>
      <span className={css.target} title={record.address ?? undefined}>
        <span className="cut-off">
          {record.host}
          <span className="soft">:{record.port}</span>
        </span>
        {record.reason && <span className={css.reason}>{record.reason}</span>}
      </span>
      <span className={css.numbers}>
        {record.verdict === "refused" ? often(record) : `${size(record.sent)} out, ${size(record.received)} in, ${duration(record.duration_ms)}`}
        {record.run && (
          <>
            {" "}
            <a href={to("runs", record.run)}>run</a>
          </>
        )}
      </span>
      <span className={css.when}>
        <Time at={record.at} />
      </span>
    </li>
  );
}
