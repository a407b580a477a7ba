// One call of a tool: a row that says what and how it went, and unfolds to what came of it.

import { memo, useEffect, useId, useState } from "react";
import { Badge, classes, IconButton, Spinner } from "../../ui/basics";
import { duration } from "../../ui/format";
import { Icon, type IconName } from "../../ui/icons";
import { CallDetail, LiveTail } from "./call-detail";
import { changed, ending, heading, isOver } from "./call-words";
import css from "./call.module.css";
import { fileHref } from "./place";
import { useTalk } from "./talk-context";
import type { Call } from "./view";

const ICONS: Record<Call["tool"], IconName> = {
  read: "file",
  edit: "edit",
  search: "search",
  execute: "terminal",
  think: "memory",
  fetch: "network",
  other: "settings",
};

export const CallStep = memo(function CallStep({ call, role }: { call: Call; role: string }) {
  const [open, setOpen] = useState(false);
  const detail = useId();
  const { verb, about, path } = heading(call);
  const href = path === null ? null : fileHref(path, role);
  const running = !isOver(call) && call.asked !== "waiting";
  return (
    <div id={`step-${call.seq}`} className={css.call} data-status={call.status}>
      <div className={css.row}>
        <button type="button" className={css.toggle} aria-expanded={open} aria-controls={detail} onClick={() => setOpen(!open)}>
          <Status call={call} />
          <span className={css.verb}>{verb}</span>
          <span className={css.about} title={about}>
            {about && <code>{about}</code>}
            {path !== null && !href && <code>{path}</code>}
          </span>
        </button>
        {href && (
          <a className={css.path} href={href} title={`Open ${path}`}>
            {path}
          </a>
        )}
        <span className={css.end}>
          <Facts call={call} />
          <UndoStep call={call} />
          <button type="button" className={css.fold} tabIndex={-1} aria-hidden="true" onClick={() => setOpen(!open)}>
            <Icon name={open ? "down" : "chevron"} size={15} />
          </button>
        </span>
      </div>
      <div id={detail} className={classes((open || (running && call.tool === "execute" && call.output)) && css.detail)}>
        {open ? <CallDetail call={call} role={role} /> : running && call.tool === "execute" && <LiveTail call={call} />}
      </div>
    </div>
  );
});

const WORDS: Record<Call["status"], string> = {
  pending: "Waiting",
  in_progress: "Running",
  completed: "Done",
  failed: "Failed",
  cut_off: "Cut off",
};

function Status({ call }: { call: Call }) {
  const waiting = call.asked === "waiting";
  const running = !waiting && !isOver(call);
  const words = waiting ? "Waits for you" : call.asked === "denied" ? "Denied" : WORDS[call.status];
  return (
    <span className={css.status} data-status={waiting ? "waiting" : call.status}>
      {running ? <Spinner /> : <Icon name={call.status === "failed" || call.status === "cut_off" ? "warning" : waiting ? "user" : ICONS[call.tool]} size={16} />}
      <span className="unseen">{words}: </span>
    </span>
  );
}

/** How it went, in a word or two. */
function Facts({ call }: { call: Call }) {
  const { takenBack } = useTalk();
  const lines = isOver(call) ? changed(call) : null;
  const end = ending(call);
  return (
    <>
      {takenBack(call) && <Badge tone="warn">taken back</Badge>}
      {call.asked === "denied" && <Badge tone="warn">denied</Badge>}
      {call.status === "cut_off" && <Badge tone="warn">cut off</Badge>}
      {end && end.code !== 0 && <Badge tone="bad">{end.code === null ? end.text : `exit ${end.code}`}</Badge>}
      {end?.code === 0 && <span className="unseen">exit code 0</span>}
      {lines && lines.added + lines.cut === 0 && <span className={css.tally}>unchanged</span>}
      {lines && lines.added + lines.cut > 0 && (
        <span className={css.tally} title={`${lines.added} lines added, ${lines.cut} cut`}>
          <span className={css.added}>+{lines.added}</span> <span className={css.cut}>−{lines.cut}</span>
        </span>
      )}
      <span className={css.time}>{call.endedAt === null ? <Elapsed since={call.at} /> : call.endedAt - call.at >= 100 && duration(call.endedAt - call.at)}</span>
    </>
  );
}

/** Counts the seconds of what takes more than one. */
function Elapsed({ since }: { since: number }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.floor((now - since) / 1000);
  return seconds < 2 ? null : <>{duration(seconds * 1000)}</>;
}

function UndoStep({ call }: { call: Call }) {
  const { parent, takenBack, undo } = useTalk();
  if (call.checkpoints.length === 0 || takenBack(call) || (parent && call.seq <= parent.seq)) return null;
  return <IconButton small className={css.undo} label="Undo this step" icon="undo" onClick={() => undo({ step: call.seq })} />;
}
