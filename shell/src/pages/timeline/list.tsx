// The moments, by day, newest first. Only those in view are made; older ones are asked for on the way.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useRef } from "react";
import { Button, Empty, Skeleton, Spinner, Trouble } from "../../ui/basics";
import { exactly } from "../../ui/format";
import type { FeedRow } from "./feed";
import css from "./list.module.css";
import { addressOf, type Shown } from "./place";
import { Moment } from "./row";
import { useTitles, type useFeed } from "./use-feed";

const HEIGHTS = { day: 38, checkpoint: 66, more: 52 };
/** Rows before the end at which older ones are asked for. */
const AHEAD = 12;

interface Props {
  feed: ReturnType<typeof useFeed>;
  rows: readonly FeedRow[];
  shown: Shown;
  picking: boolean;
  onChoose: (id: number) => void;
  onCancel: () => void;
}

export function FeedList({ feed, rows, shown, picking, onChoose, onCancel }: Props) {
  const { hasNextPage, isFetchingNextPage, isPending, error, refetch } = feed;
  return (
    <>
      {picking && (
        <div className={css.picking} role="status">
          <span className="grow">Choose the moment to compare with.</span>
          <Button small onClick={onCancel}>
            Cancel
          </Button>
        </div>
      )}
      {isPending ? (
        <Waiting />
      ) : error && rows.length === 0 ? (
        <div className={css.pad}>
          <Trouble error={error} retry={() => void refetch()} />
        </div>
      ) : rows.length === 0 && !hasNextPage && !isFetchingNextPage ? (
        <Nothing shown={shown} />
      ) : (
        <Rows feed={feed} rows={rows} shown={shown} picking={picking} onChoose={onChoose} />
      )}
    </>
  );
}

function Rows({ feed, rows, shown, picking, onChoose }: Omit<Props, "onCancel">) {
  const scroll = useRef<HTMLDivElement>(null);
  const titles = useTitles();
  const { hasNextPage, isFetchingNextPage, fetchNextPage, isFetchNextPageError } = feed;
  const virtual = useVirtualizer({
    count: rows.length + (hasNextPage ? 1 : 0),
    getScrollElement: () => scroll.current,
    estimateSize: (index) => HEIGHTS[rows[index]?.kind ?? "more"],
    // The same function while the rows are the same: with another one every row is measured again.
    getItemKey: useCallback((index: number) => keyOf(rows[index]), [rows]),
    overscan: 8,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError && last >= rows.length - AHEAD) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);
  // A row of another height may have come under a number that had one.
  useEffect(() => virtual.measure(), [virtual, rows]);

  const step = (event: React.KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const from = Number((event.target as HTMLElement).closest<HTMLElement>("[data-row]")?.dataset.row ?? NaN);
    if (!by || Number.isNaN(from)) return;
    event.preventDefault();
    const next = nextMoment(rows, from, by);
    if (next < 0) return;
    virtual.scrollToIndex(next);
    requestAnimationFrame(() => scroll.current?.querySelector<HTMLElement>(`[data-row="${next}"] a`)?.focus());
  };
  const oldest = feed.checkpoints.at(-1);
  return (
    <div ref={scroll} className={css.scroll} onKeyDown={step}>
      <ol className={css.all} style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index];
          const style = { height: item.size, transform: `translateY(${item.start}px)` };
          return (
            <li key={item.key} className={css.row} style={style} data-row={item.index}>
              {row?.kind === "day" ? (
                <h2 className={css.day}>{row.words}</h2>
              ) : row ? (
                <Moment
                  checkpoint={row.checkpoint}
                  last={row.last}
                  titles={titles}
                  href={addressOf({ ...shown, id: row.checkpoint.id, compare: null })}
                  state={row.checkpoint.id === shown.id ? "open" : row.checkpoint.id === shown.compare ? "compared" : "closed"}
                  still={!virtual.isScrolling}
                  onChoose={picking ? onChoose : undefined}
                />
              ) : isFetchNextPageError ? (
                <Button small onClick={() => void fetchNextPage()}>
                  Try again
                </Button>
              ) : (
                <span className={css.more}>
                  <Spinner /> Looking further back{oldest ? ` than ${exactly(oldest.time)}` : ""}
                </span>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

const keyOf = (row: FeedRow | undefined) => (row === undefined ? "more" : row.kind === "day" ? row.words : row.checkpoint.id);

function nextMoment(rows: readonly FeedRow[], from: number, by: number): number {
  for (let at = from + by; at >= 0 && at < rows.length; at += by) if (rows[at]!.kind === "checkpoint") return at;
  return -1;
}

function Waiting() {
  return (
    <div className={css.waiting} role="status" aria-label="Loading">
      {Array.from({ length: 8 }, (_, index) => (
        <Skeleton key={index} height={48} />
      ))}
    </div>
  );
}

function Nothing({ shown }: { shown: Shown }) {
  const some = shown.path || shown.conversation || shown.named || shown.who !== "all";
  return some ? (
    <Empty icon="search" title="Nothing like that">
      No moment fits what is asked for{shown.path ? `: ${shown.path} has no recorded change` : ""}.
    </Empty>
  ) : (
    <Empty icon="timeline" title="Nothing has happened yet">
      Whatever changes files shows up here, whoever did it, and can be undone.
    </Empty>
  );
}
