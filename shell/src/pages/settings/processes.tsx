// The processes of nacre.toml: how they are, their logs, and starting them again.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { get, post, type Of } from "../../api/client";
import { Badge, Button, Notice, Skeleton, Trouble } from "../../ui/basics";
import { count } from "../../ui/format";
import { Menu, say, sayError } from "../../ui/overlay";
import { Panel } from "../../ui/panel";
import { ProcessBadge, type Process } from "../../ui/process";
import { Time } from "../../ui/time";
import { to } from "../../app/router";
import css from "./settings.module.css";
import { Tail } from "./tail";

type List = Omit<Of<"ProcessList">, "processes"> & { processes: Process[] };

export const useProcesses = () => useQuery({ queryKey: ["processes"], queryFn: () => get<List>("/supervisor/processes"), refetchInterval: 10_000 });

export const restart = (name: string) => post<Process>(`/supervisor/processes/${encodeURIComponent(name)}/restart`);

export function Processes() {
  const { data, error, refetch } = useProcesses();
  return (
    <Panel title="Processes" about={<>Those that nacre.toml names, and how they are.</>}>
      {error && !data && <Trouble error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height={60} />}
      {data?.config_error && (
        <Notice tone="warn" icon="warning">
          nacre.toml cannot be used{data.config_error.line ? `, line ${data.config_error.line}` : ""}: {data.config_error.reason}. What ran before runs on. <a href={to("files", "nacre.toml", { line: data.config_error.line ?? undefined })}>Open it</a>
        </Notice>
      )}
      {data?.processes.length === 0 && (
        <p className="small soft">
          There are none. The page you see is the copy that came with Nacre. <a href={to("files", "nacre.toml")}>nacre.toml</a> could name an app.
        </p>
      )}
      <ul className={css.list}>{data?.processes.map((process) => <One key={process.name} process={process} />)}</ul>
    </Panel>
  );
}

function One({ process }: { process: Process }) {
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState(false);
  const runs = process.state !== "stopped" && process.state !== "failed";
  const act = (what: "start" | "stop" | "restart", done: string) => {
    setBusy(true);
    post(`/supervisor/processes/${encodeURIComponent(process.name)}/${what}`)
      .then(() => say(`${process.name} ${done}`), sayError)
      .finally(() => {
        setBusy(false);
        void client.invalidateQueries({ queryKey: ["processes"] });
      });
  };
  return (
    <li className={css.process}>
      <div className="row wraps">
        <div className={css.what}>
          <p className="row">
            <strong>{process.name}</strong>
            <ProcessBadge process={process} />
            {process.restarts > 0 && <Badge>{count(process.restarts, "restart")}</Badge>}
          </p>
          <p className="small soft cut-off" title={process.command}>
            {process.reason ?? process.command}
          </p>
          <p className="small soft">
            <Time at={process.since} />
            {process.port ? `, port ${process.port}` : ""}
            {process.pid ? `, pid ${process.pid}` : ""}
          </p>
        </div>
        <div className="row">
          <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
            Log
          </Button>
          <Button small icon="refresh" busy={busy} onClick={() => (runs ? act("restart", "was started again") : act("start", "was started"))}>
            {runs ? "Restart" : "Start"}
          </Button>
          <Menu label={`More for ${process.name}`} items={[{ label: "Stop", icon: "stop", disabled: !runs, act: () => act("stop", "was stopped") }]} />
        </div>
      </div>
      {open && <Tail name={process.name} />}
    </li>
  );
}
