// What listens in the sandbox, and the way to it.

import { gateway } from "../../api/mount";
import { LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { Panel, Typed } from "../../ui/panel";
import { usePorts, type Role } from "./data";
import { ours, portsOf } from "./log";
import css from "./network.module.css";

export function Ports({ role }: { role: Role }) {
  const { data, error, refetch } = usePorts(role);
  const list = data ? portsOf(data) : [];
  return (
    <Panel title="What listens" about="Whatever listens in the sandbox can be opened from here. Nobody else reaches it.">
      {error && !data && <Trouble error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height={80} />}
      {data && list.length === 0 && <p className="small soft">Nothing does. Start a server in the terminal, and it appears here.</p>}
      <ul className={css.ports}>
        {list.map((one) => (
          <li key={one.port}>
            <strong className={css.port}>{one.port}</strong>
            <span className="grow cut-off">
              {ours(one) ?? one.process ?? "Not known who"} <span className="small soft">{one.address}</span>
            </span>
            {!ours(one) && (
              <LinkButton small icon="external" target="_blank" rel="noreferrer" href={gateway(`${role === "dev" ? "/dev" : ""}/ports/${one.port}/`).href}>
                Open
              </LinkButton>
            )}
          </li>
        ))}
      </ul>
      <p className="row wraps small soft">
        As a port of your own machine: <Typed line={`nacre forward ${role} PORT`} />
      </p>
    </Panel>
  );
}
