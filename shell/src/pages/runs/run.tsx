// One run: how it stands, what happened and what it changed.

import { useEffect, useRef } from "react";
import type { Of } from "../../api/client";
import { gateway } from "../../api/mount";
import { go, to } from "../../app/router";
import { Badge, Choice, LinkButton, Notice, Skeleton, Spinner, Trouble } from "../../ui/basics";
import { count, dollars, duration, short } from "../../ui/format";
import { Icon } from "../../ui/icons";
import { Facts, Meter } from "../../ui/panel";
import { Time } from "../../ui/time";
import { Changes } from "./changes";
import { useRun, useStory } from "./data";
import { Happened } from "./item";
import css from "./runs.module.css";
import type { Step, Story } from "./story";
import { ending, isOver, lasted, standing } from "./words";

export function Run({ id, tab }: { id: string; tab: string }) {
  const { data: found, error, refetch } = useRun(id);
  const { story, connected, error: broken } = useStory(id);
  const run = story.ended ?? found;
  if (!run) return <div className={css.detail}>{error ? <Trouble error={error} retry={() => void refetch()} /> : <Skeleton height={240} />}</div>;
  const shown = tab === "changes" ? "changes" : "story";
  return (
    <article className={css.detail} aria-label={run.title}>
      <LinkButton className={css.back} small look="quiet" icon="chevron" href={to("runs")}>
        All runs
      </LinkButton>
      <Head run={{ ...run, used: story.used ?? run.used, state: story.state ?? run.state }} />
      <Choice
        label="What to show"
        value={shown}
        options={[
          { value: "story", label: "What happened" },
          { value: "changes", label: `Changes${run.changes ? ` (${run.changes.added + run.changes.changed + run.changes.removed})` : ""}` },
        ]}
        onChange={(next) => go(to("runs", id, { tab: next === "story" ? undefined : next }), "replace")}
      />
      {shown === "changes" ? <Changes run={run} /> : <Told story={story} run={run} connected={connected} error={broken} />}
    </article>
  );
}

function Head({ run }: { run: Of<"RunInfo"> }) {
  const { words, tone } = standing(run);
  const took = lasted(run, Date.now());
  const { used, limits } = run;
  return (
    <header className="column">
      <div className="row wraps">
        <Badge tone={tone}>{words}</Badge>
        <code className="small soft">{run.id}</code>
        <span className="small soft">
          <Time at={run.created_at} />
        </span>
      </div>
      <h2 className={css.task}>{run.title}</h2>
      {run.outcome && run.outcome.how !== "done" && <Notice tone="warn">{ending(run.outcome)}</Notice>}
      <Facts
        facts={[
          ["Agent", run.agent],
          run.model ? ["Model", run.model] : null,
          ["Time", took === null ? "not begun" : duration(took)],
          ["Steps", `${used.steps} of ${limits.max_steps}`],
          ["Tool calls", used.tool_calls],
          ["Tokens", short(used.tokens)],
          ["Cost", limits.dollars ? `${dollars(used.dollars)} of ${dollars(limits.dollars)}` : dollars(used.dollars)],
          run.sandbox ? ["Sandbox", run.sandbox] : null,
        ]}
      />
      {limits.dollars ? <Meter label="Budget" value={used.dollars} most={limits.dollars} words={`${dollars(used.dollars)} of ${dollars(limits.dollars)}`} /> : null}
      {!isOver(run) && (
        <div className="row">
          <LinkButton small icon="close" href={`${gateway("/admin/sandboxes/runs/new").href}#${run.id}`}>
            Cancel this run
          </LinkButton>
        </div>
      )}
    </header>
  );
}

function Told({ story, run, connected, error }: { story: Story; run: Of<"RunInfo">; connected: boolean; error: unknown }) {
  const end = useRef<HTMLDivElement>(null);
  usePinned(end, story.items);
  const over = isOver(run);
  return (
    <div className="column">
      {story.plan.length > 0 && <Plan steps={story.plan} />}
      <ol className={css.story} aria-label="What happened" aria-live={over ? "off" : "polite"}>
        {story.items.map((item, index) => (
          <Happened key={index} item={item} />
        ))}
      </ol>
      {error !== null && <Trouble error={error} />}
      {!over && error === null && (
        <p className={css.now} role="status">
          <Spinner />
          {!connected ? "The connection was lost; trying again." : story.state === "queued" ? `It waits behind ${count(story.ahead, "other run")}.` : `${standing({ ...run, state: story.state ?? run.state }).words}.`}
        </p>
      )}
      {over && story.items.length === 0 && error === null && <p className="soft">It said nothing.</p>}
      <div ref={end} />
    </div>
  );
}

/** Keeps the end in view while it is in view. */
function usePinned(end: React.RefObject<HTMLDivElement | null>, items: unknown): void {
  const inView = useRef(false);
  useEffect(() => {
    if (!end.current) return;
    const observer = new IntersectionObserver(([entry]) => (inView.current = entry?.isIntersecting ?? false), { rootMargin: "0px 0px 80px" });
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [end]);
  useEffect(() => {
    if (inView.current) end.current?.scrollIntoView({ block: "end" });
  }, [end, items]);
}

function Plan({ steps }: { steps: readonly Step[] }) {
  return (
    <ul className={css.plan} aria-label="Plan">
      {steps.map((step, index) => (
        <li key={index} data-status={step.status}>
          <Icon name={step.status === "completed" ? "check" : step.status === "in_progress" ? "play" : "dot"} size={16} />
          <span className="unseen">{{ completed: "Done:", in_progress: "Now:", pending: "To do:" }[step.status]}</span>
          {step.content}
        </li>
      ))}
    </ul>
  );
}
