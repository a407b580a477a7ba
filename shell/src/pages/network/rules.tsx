// What goes out: the mode, the rules, and the connections that are open now.

import type { Of } from "../../api/client";
import { gateway } from "../../api/mount";
import { Badge, LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { count, size } from "../../ui/format";
import { Panel } from "../../ui/panel";
import { Time } from "../../ui/time";
import { useEgress, type Role } from "./data";
import css from "./network.module.css";

const MODES: Record<Of<"EgressMode">, { words: string; tone: "good" | "warn" | "bad"; means: string }> = {
  open: { words: "Open", tone: "good", means: "The public internet may be reached, but not this machine or its network, unless a rule says otherwise." },
  "allow-list": { words: "Allow-list", tone: "warn", means: "Nothing may be reached but what a rule allows." },
  none: { words: "Closed", tone: "bad", means: "Nothing may be reached, whatever the rules say." },
};

export function Rules({ role }: { role: Role }) {
  const { data: view, error, refetch } = useEgress(role);
  if (error && !view) return <Trouble error={error} retry={() => void refetch()} />;
  if (!view) return <Skeleton height={220} />;
  const mode = MODES[view.mode];
  return (
    <div className={css.pair}>
      <Panel
        title="The way out"
        acts={
          <LinkButton small icon="external" href={gateway("/admin/sandboxes/network").href}>
            Change
          </LinkButton>
        }
      >
        <div className="row wraps">
          <Badge tone={mode.tone}>{mode.words}</Badge>
          {view.default_mode && <span className="small soft">as nacre.toml has it</span>}
        </div>
        <p>{mode.means}</p>
        <h3>Rules</h3>
        {view.rules.length === 0 && <p className="small soft">There are none.</p>}
        <ul className={css.rules}>
          {view.rules.map((rule) => (
            <li key={`${rule.effect} ${rule.target}`}>
              <Badge tone={rule.effect === "deny" ? "bad" : "good"}>{rule.effect === "deny" ? "Deny" : "Allow"}</Badge>
              <code className="grow">{rule.target}</code>
              {rule.private && <Badge title="The name may lead to an address that is not public.">private too</Badge>}
              {rule.default && <span className="small soft">nacre.toml</span>}
            </li>
          ))}
        </ul>
        <p className="small soft">Rules are changed on a page of the gateway: what runs in a sandbox, this desktop included, must not open its own way out.</p>
      </Panel>
      <Panel title="Open now" about={`${count(view.open.length, "connection")} of at most ${view.limits.connections.toLocaleString("en")}`}>
        {view.open.length === 0 && <p className="small soft">Nothing is connected to the world outside.</p>}
        <ul className={css.open}>
          {view.open.slice(-50).map((connection, index) => (
            <li key={`${connection.host} ${connection.since} ${index}`}>
              <span className="grow cut-off" title={connection.address}>
                {connection.host}
                <span className="soft">:{connection.port}</span>
              </span>
              <span className="small soft">
                {size(connection.sent)} out, {size(connection.received)} in
              </span>
              <span className="small soft">
                <Time at={connection.since} />
              </span>
            </li>
          ))}
        </ul>
      </Panel>
    </div>
  );
}
