// One of the two roles: how its sandbox is, what it uses and what runs in it.

import { role as here, gateway } from "../../api/mount";
import type { Of } from "../../api/client";
import { Badge, LinkButton, Notice, Skeleton, Trouble } from "../../ui/basics";
import { count, duration, size } from "../../ui/format";
import { Facts, Meter, Panel } from "../../ui/panel";
import { ProcessBadge } from "../../ui/process";
import { Time } from "../../ui/time";
import { useRole, type Role } from "./data";
import css from "./roles.module.css";

const STATES: Record<Of<"SandboxState">, { words: string; tone: "good" | "warn" | "bad" | "plain" }> = {
  running: { words: "Running", tone: "good" },
  paused: { words: "Paused", tone: "warn" },
  stopped: { words: "Stopped", tone: "plain" },
  failed: { words: "Failed", tone: "bad" },
};

export function Side({ role, box }: { role: Role; box: Of<"SandboxInfo"> }) {
  const known = useRole(role, box.state === "running");
  const { words, tone } = STATES[box.state];
  const open = gateway(role === "dev" ? "/dev/" : "/").href;
  return (
    <Panel
      title={role}
      about={role === "live" ? "What you use, at /" : "Where things are tried, at /dev/"}
      acts={
        <>
          <Badge tone={tone}>{words}</Badge>
          {role === here ? (
            <Badge tone="accent">You are here</Badge>
          ) : (
            <LinkButton small icon="external" href={open}>
              Open {role}
            </LinkButton>
          )}
        </>
      }
    >
      {box.failure && (
        <Notice tone="warn" icon="warning">
          {box.failure}
        </Notice>
      )}
      {box.state === "running" && <Well known={known} />}
      <Uses known={known} limits={box.limits} />
      <Facts
        facts={[
          ["Sandbox", <code key="id">{box.id}</code>],
          ["Made", <Time key="made" at={box.created_at} />],
          known.health.data && ["Up for", duration(known.health.data.uptime_ms)],
          box.supervisor ? ["Supervisor", box.supervisor] : null,
        ]}
      />
      {box.state === "running" && <Runs known={known} />}
    </Panel>
  );
}

type Known = ReturnType<typeof useRole>;

function Well({ known: { health, processes } }: { known: Known }) {
  if (health.error) return <Trouble error={health.error} retry={() => void health.refetch()} />;
  if (!health.data) return <Skeleton height={24} width={140} />;
  const ill = processes.data?.processes.filter(({ state, responding }) => responding === false || /^(crash-looping|failed|backing-off)$/.test(state)) ?? [];
  const error = processes.data?.config_error;
  if (health.data.status !== "ok") return <Badge tone="bad">Its supervisor is not well</Badge>;
  if (error) return <Badge tone="bad">nacre.toml{error.line ? `, line ${error.line}` : ""}: {error.reason}</Badge>;
  if (ill.length > 0) return <Badge tone="bad">{ill.map(({ name }) => name).join(", ")} not well</Badge>;
  return (
    <div className="row wraps">
      <Badge tone="good">Well</Badge>
      {health.data.contained_panics > 0 && <span className="small soft">{count(health.data.contained_panics, "contained failure")}</span>}
    </div>
  );
}

function Uses({ known: { stats, cpu }, limits }: { known: Known; limits: Of<"Limits"> }) {
  const { memory_bytes: memory, disk_bytes: disk, pids, oom_kills: kills } = stats.data ?? {};
  const most = stats.data?.memory_limit_bytes ?? limits.memory_bytes ?? null;
  return (
    <div className={css.uses}>
      <Use name="Memory" value={memory === null || memory === undefined ? null : size(memory)} of={most ? size(most) : undefined} part={most && memory ? [memory, most] : undefined} />
      <Use name="Processors" value={cpu === null ? null : `${cpu.toFixed(cpu < 10 ? 1 : 0)} %`} of={limits.cpu_millis ? `${limits.cpu_millis / 10} %` : undefined} part={limits.cpu_millis && cpu !== null ? [cpu, limits.cpu_millis / 10] : undefined} />
      <Use name="Disk" value={disk === null || disk === undefined ? null : size(disk)} of={limits.disk_bytes ? size(limits.disk_bytes) : undefined} part={limits.disk_bytes && disk ? [disk, limits.disk_bytes] : undefined} />
      <Use name="Processes" value={pids === null || pids === undefined ? null : String(pids)} of={limits.pids ? String(limits.pids) : undefined} />
      {Boolean(kills) && <p className={css.kills}>{count(kills!, "process was", "processes were")} ended for want of memory.</p>}
    </div>
  );
}

function Use({ name, value, of, part }: { name: string; value: string | null; of?: string | undefined; part?: [number, number] | undefined }) {
  return (
    <div className={css.use}>
      <span className="small soft">{name}</span>
      <span className={css.value}>
        {value ?? "–"} {of && <span className="small soft">of {of}</span>}
      </span>
      {part && <Meter label={name} value={part[0]} most={part[1]} words={`${value} of ${of}`} />}
    </div>
  );
}

function Runs({ known: { processes, commands } }: { known: Known }) {
  const running = commands.data?.commands.filter(({ exit }) => !exit) ?? [];
  const list = processes.data?.processes ?? [];
  return (
    <div className="column">
      <h3>What runs</h3>
      {processes.error !== null && <Trouble error={processes.error} />}
      <ul className={css.list}>
        {list.map((process) => (
          <li key={process.name}>
            <span className="grow cut-off" title={process.command}>
              <strong>{process.name}</strong> <span className="small soft">{process.reason ?? process.command}</span>
            </span>
            <ProcessBadge process={process} />
          </li>
        ))}
        {running.slice(0, 5).map((command) => (
          <li key={command.id}>
            <span className="grow cut-off" title={command.command}>
              {command.label ?? <span className="mono">{command.command}</span>}
            </span>
            <span className="small soft">
              <Time at={command.started_at} />
            </span>
          </li>
        ))}
        {running.length > 5 && <li className="small soft">and {count(running.length - 5, "more command")}</li>}
        {list.length === 0 && running.length === 0 && processes.data && <li className="small soft">No app and no command.</li>}
      </ul>
    </div>
  );
}
