// All runs that are kept, newest first.

import { to } from "../../app/router";
import type { Of } from "../../api/client";
import { Badge, classes } from "../../ui/basics";
import { count, dollars, duration } from "../../ui/format";
import { Time } from "../../ui/time";
import css from "./runs.module.css";
import { lasted, standing } from "./words";

export function List({ runs, chosen, atOnce }: { runs: readonly Of<"RunInfo">[]; chosen: string; atOnce: number }) {
  const now = Date.now();
  return (
    <nav aria-label="Runs" className={css.listing}>
      <ul>
        {runs.map((run) => {
          const { words, tone } = standing(run);
          const took = lasted(run, now);
          return (
            <li key={run.id}>
              <a href={to("runs", run.id)} aria-current={run.id === chosen ? "true" : undefined} className={classes(css.run, run.id === chosen && css.chosen)}>
                <span className={css.title}>{run.title || "A task without words"}</span>
                <span className="row">
                  <Badge tone={tone}>{words}</Badge>
                  <span className="small soft cut-off">
                    <Time at={run.created_at} />
                    {took !== null && `, ${duration(took)}`}
                  </span>
                  <span className={css.cost}>{dollars(run.used.dollars)}</span>
                </span>
                <span className="small soft cut-off">
                  {run.agent}
                  {run.model && ` with ${run.model}`}
                </span>
              </a>
            </li>
          );
        })}
      </ul>
      <p className={css.foot}>At most {count(atOnce, "run")} at once; others wait for their turn.</p>
    </nav>
  );
}
