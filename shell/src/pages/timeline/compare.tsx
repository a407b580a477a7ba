// What changed from one moment to another, or to now.

import { useQuery } from "@tanstack/react-query";
import { IconButton, Skeleton, Trouble, Empty } from "../../ui/basics";
import { count, exactly } from "../../ui/format";
import { Icon } from "../../ui/icons";
import { between } from "./calls";
import { ChangeList } from "./changes";
import css from "./detail.module.css";
import { moments } from "./feed";
import { addressOf, show, type Shown } from "./place";
import page from "./timeline.module.css";
import { useCheckpoint } from "./use-feed";
import { titleOf } from "./words";

/** Each comes with its lines. */
const MOST_FILES = 300;

export function Compare({ shown, other }: { shown: Shown; other: number | "now" }) {
  const { from, to } = moments(shown.id ?? 0, other);
  const path = shown.path || undefined;
  const { data, error, refetch } = useQuery({
    // Only the present can still change.
    queryKey: [to === undefined ? "history" : "checkpoint", "between", from, to, path],
    queryFn: () => between(from, to, { path, limit: MOST_FILES }),
    staleTime: to === undefined ? 5000 : Infinity,
  });
  const close = () => show(shown, { compare: null });
  return (
    <>
      <header className={css.bar}>
        <IconButton className={page.back} label="Back to the moment" icon="chevron" style={{ rotate: "180deg" }} onClick={close} />
        <h2 className="grow cut-off">Compare two moments</h2>
        <IconButton label="End the comparison" icon="close" onClick={close} />
      </header>
      <div className={css.body}>
        <div className={css.moments}>
          <Side id={from} shown={shown} />
          <Icon name="send" />
          <Side id={to} shown={shown} />
        </div>
        {error ? (
          <Trouble error={error} retry={() => void refetch()} />
        ) : !data ? (
          <Skeleton height={200} />
        ) : data.total === 0 ? (
          <Empty icon="check" title="The same">
            {path ? `${path} was` : "All files were"} the same at both moments.
          </Empty>
        ) : (
          <>
            <p className="soft small">
              {count(data.total, "file differs", "files differ")}
              {path && ` within ${path}`}.
            </p>
            <ChangeList changes={data.changes} total={data.total} few={8} />
          </>
        )}
      </div>
    </>
  );
}

function Side({ id, shown }: { id: number | undefined; shown: Shown }) {
  const { data } = useCheckpoint(id ?? null, undefined);
  if (id === undefined) {
    return (
      <div className={css.side}>
        <div className="soft small">Now</div>
        <div>As it is</div>
      </div>
    );
  }
  return (
    <div className={css.side}>
      <div className="soft small">
        After <a href={addressOf({ ...shown, id, compare: null })}>#{id}</a>
        {data && `, ${exactly(data.time)}`}
      </div>
      <div className="cut-off">{data ? data.label || titleOf(data) : "…"}</div>
    </div>
  );
}
