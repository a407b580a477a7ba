// From dev to live: the checks as they are made, and the ways to the pages that can do it.

import { useCallback, useEffect, useRef, useState } from "react";
import { lines, LONG_PATIENCE, Refusal, request } from "../../api/client";
import { gateway } from "../../api/mount";
import { Button, LinkButton, Notice, Spinner, Trouble } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { Panel } from "../../ui/panel";
import { hear, rows, UNSEEN, type Check, type Row, type Seen, type Verdict } from "./checks";
import css from "./roles.module.css";

type Progress = { seen: Seen; running: boolean; error: unknown };
const BEFORE: Progress = { seen: UNSEEN, running: false, error: null };

export function useChecks() {
  const [progress, setProgress] = useState(BEFORE);
  const under = useRef<AbortController | null>(null);
  useEffect(() => () => under.current?.abort(), []);
  const run = useCallback(async () => {
    under.current?.abort();
    const control = (under.current = new AbortController());
    let seen = UNSEEN;
    const show = (more: Partial<Progress>) => !control.signal.aborted && setProgress({ seen, running: true, error: null, ...more });
    show({});
    try {
      const response = await request("/admin/sandboxes/swap/checks", { of: "gateway", signal: control.signal, patience: LONG_PATIENCE });
      for await (const line of lines<Check | Verdict>(response)) {
        seen = hear(seen, line);
        show({});
      }
      show({ running: false, error: seen.verdict ? null : new Error("the connection broke before all checks were made") });
    } catch (error) {
      show({ running: false, error });
    }
  }, []);
  return { ...progress, run };
}

export function Promote({ checks: { seen, running, error, run }, canRollBack }: { checks: ReturnType<typeof useChecks>; canRollBack: boolean }) {
  const tooOld = error instanceof Refusal && error.status === 404;
  return (
    <Panel
      title="From dev to live"
      about="dev is asked for what people will ask it for as live. Looking moves nothing."
      acts={
        <Button icon="check" busy={running} onClick={() => void run()}>
          {seen.verdict ? "Check again" : "Check dev"}
        </Button>
      }
    >
      <ol className={css.checks} aria-label="Checks of dev" aria-live="polite" aria-busy={running}>
        {rows(seen, running).map((row) => (
          <CheckRow key={row.name} row={row} />
        ))}
      </ol>
      {tooOld && <Notice>This gateway makes the checks only when you promote. It shows them there.</Notice>}
      {error !== null && !tooOld && <Trouble error={error} retry={() => void run()} />}
      {seen.verdict && (
        <p role="status" className={css.verdict} data-ok={seen.verdict.ok || undefined}>
          {seen.verdict.ok ? "All checks hold: " : "Not yet: "}
          {seen.verdict.verdict.replace(/\.$/, "")}.
        </p>
      )}
      <div className="row wraps">
        <LinkButton look="primary" icon="send" href={gateway("/admin/sandboxes/promote").href}>
          Promote dev
        </LinkButton>
        {canRollBack && (
          <LinkButton icon="undo" href={gateway("/admin/sandboxes#roll-back").href}>
            Roll back
          </LinkButton>
        )}
        <LinkButton icon="refresh" href={gateway("/admin/sandboxes#reset-dev").href}>
          Reset dev
        </LinkButton>
      </div>
      <Why />
    </Panel>
  );
}

/** Why a link and not a button. */
export function Why() {
  return (
    <p className="small soft">
      These lead to pages of the gateway: this desktop can be rewritten by an agent, so it is not trusted with what becomes live.
    </p>
  );
}

function CheckRow({ row: { asks, check, now } }: { row: Row }) {
  const state = check ? (check.ok ? "ok" : "bad") : now ? "now" : "open";
  return (
    <li className={css.check} data-state={state}>
      <span className={css.mark}>
        {state === "now" ? <Spinner /> : <Icon name={{ ok: "check", bad: "close", open: "dot" }[state] as "check"} size={16} />}
        <span className="unseen">{{ ok: "Holds:", bad: "Fails:", now: "Being made:", open: "Not made yet:" }[state]}</span>
      </span>
      <span className="grow">
        {asks}
        <span className={css.detail}>{check?.detail ?? " "}</span>
        {check?.evidence?.map((one, index) => (
          <pre key={index} className={css.evidence} tabIndex={0}>
            {one.url}: {one.problem}
            {one.status ? ` ${one.status}` : ""} {one.content_type ?? ""}
            {one.excerpt ? `\n${one.excerpt}` : ""}
          </pre>
        ))}
      </span>
    </li>
  );
}
