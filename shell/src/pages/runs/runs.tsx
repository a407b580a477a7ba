// One-shot runs: a task for an agent, done in a sandbox of its own.

import { gateway } from "../../api/mount";
import { classes, Empty, LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { PageFrame } from "../../ui/page";
import { Typed } from "../../ui/panel";
import { useRuns } from "./data";
import { List } from "./list";
import { Run } from "./run";
import css from "./runs.module.css";

export default function Page({ rest, query }: { rest: string; query: URLSearchParams }) {
  const { data, error, refetch } = useRuns();
  const first = data?.runs[0]?.id;
  const chosen = rest || first;
  if (error && !data) {
    return (
      <PageFrame title="Runs">
        <Trouble error={error} retry={() => void refetch()} />
      </PageFrame>
    );
  }
  if (data && !chosen) {
    return (
      <PageFrame title="Runs">
        <None />
      </PageFrame>
    );
  }
  return (
    <PageFrame title="Runs" acts={<Begin />} flush>
      <div className={classes(css.split, rest && css.one)}>
        {data ? (
          <List runs={data.runs} chosen={chosen ?? ""} atOnce={data.at_once} />
        ) : (
          <div className={css.listing} role="status" aria-label="Loading">
            {[0, 1, 2, 3].map((row) => (
              <div key={row} className={css.run}>
                <Skeleton height={68} />
              </div>
            ))}
          </div>
        )}
        {chosen ? <Run key={chosen} id={chosen} tab={query.get("tab") ?? ""} /> : <div className={css.detail} />}
      </div>
    </PageFrame>
  );
}

/** A run spends, so it is begun where no script can. */
function Begin() {
  return (
    <LinkButton icon="plus" href={gateway("/admin/sandboxes/runs/new").href}>
      New run
    </LinkButton>
  );
}

function None() {
  return (
    <Empty
      icon="runs"
      title="No runs yet"
      action={
        <div className="column">
          <Begin />
          <span className="small soft">Or on the host, with files to begin with:</span>
          <Typed line="nacre run spec.txt --files . --out result" />
        </div>
      }
    >
      A run is a task for an agent, done in a sandbox that is made for it and removed when it is over. What it changed stays, and is shown here.
    </Empty>
  );
}
