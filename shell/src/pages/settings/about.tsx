// The computer itself: versions, what it knows, and what this machine cannot do fully.

import { useQuery } from "@tanstack/react-query";
import { ask, get, type Of } from "../../api/client";
import { gateway, role } from "../../api/mount";
import { LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { count, duration, size } from "../../ui/format";
import { Facts, Panel, Typed } from "../../ui/panel";
import css from "./settings.module.css";

const path = (wire: Of<"WirePath">) => (typeof wire === "string" ? wire : "a name that is no text");

export function About() {
  const host = useQuery({ queryKey: ["gateway"], queryFn: () => ask<Of<"GatewayStatus">>("/admin/sandboxes/gateway") });
  const supervisor = useQuery({ queryKey: ["version"], queryFn: () => get<Of<"Version">>("/supervisor/version") });
  const stats = useQuery({ queryKey: ["supervisor-stats"], queryFn: () => get<Of<"SupervisorStats">>("/supervisor/stats") });
  const status = host.data;
  return (
    <>
      <Panel
        title="This computer"
        acts={
          <LinkButton small icon="external" href={gateway("/admin/sandboxes").href}>
            Sandboxes
          </LinkButton>
        }
      >
        {host.error && !status && <Trouble error={host.error} retry={() => void host.refetch()} />}
        {!status && !host.error && <Skeleton height={120} />}
        {status && (
          <Facts
            facts={[
              ["Gateway", status.version],
              supervisor.data && [`Supervisor of ${role}`, supervisor.data.version],
              supervisor.data && ["Protocol", supervisor.data.protocol.oldest === supervisor.data.protocol.newest ? String(supervisor.data.protocol.newest) : `${supervisor.data.protocol.oldest} to ${supervisor.data.protocol.newest}`],
              ["Up for", duration(status.uptime_ms)],
              ["Driver", status.driver],
              ["Sandboxes", status.sandboxes.length],
              stats.data && ["Disk that is free", `${size(stats.data.disk_free_bytes)} of ${size(stats.data.disk_total_bytes)}`],
              ["Address", status.url],
              status.owner ? ["Owner", status.owner] : ["Owner", "Nobody yet"],
              ["Data folder", <code key="d">{path(status.data_dir)}</code>],
            ]}
          />
        )}
      </Panel>
      <Knows />
      {status && status.reduced.length > 0 && (
        <Panel title="What this machine cannot do fully" about="Everything works; these parts are weaker than they could be.">
          <ul className={css.list}>
            {status.reduced.map(({ what, why, remedy }) => (
              <li key={what} className={css.process}>
                <p>
                  <strong>{what}</strong> <span className="soft">{why}</span>
                </p>
                {remedy && (
                  <p>
                    <Typed line={remedy} />
                  </p>
                )}
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

/** What it remembers and has published; nothing when the gateway keeps no such thing. */
function Knows() {
  const { data } = useQuery({ queryKey: ["knowledge"], queryFn: () => ask<Of<"KnowledgeStatus">>("/admin/sandboxes/knowledge"), retry: false });
  if (!data) return null;
  return (
    <Panel title="What it knows" about="Facts that the agent remembers, documents it can search, and what you published.">
      <Facts
        facts={[
          ["Memory", count(data.facts, "fact")],
          ["Documents", data.documents.toLocaleString("en")],
          ["Published", count(data.editions, "edition")],
          ["Search by meaning", data.model],
        ]}
      />
    </Panel>
  );
}
