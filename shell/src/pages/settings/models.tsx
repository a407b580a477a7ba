// Who answers model calls.

import { gateway } from "../../api/mount";
import { to } from "../../app/router";
import { useQuery } from "@tanstack/react-query";
import { ask, type Of } from "../../api/client";
import { Badge, Empty, LinkButton, Notice, Skeleton, Trouble } from "../../ui/basics";
import { dollars } from "../../ui/format";
import { Facts, Panel, Typed } from "../../ui/panel";
import css from "./settings.module.css";

export function Models() {
  const { data, error, refetch } = useQuery({ queryKey: ["providers"], queryFn: () => ask<Of<"ProviderList">>("/admin/sandboxes/providers"), refetchInterval: 30_000 });
  return (
    <Panel
      title="Providers of models"
      about="Keys stay on the host. What runs in a sandbox, this desktop included, never sees one."
      acts={
        <LinkButton small icon="external" href={gateway("/admin/sandboxes/models").href}>
          Stop or change
        </LinkButton>
      }
    >
      {error && !data && <Trouble error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height={120} />}
      {data?.stopped && <Notice tone="warn">All calls are stopped. On the host, nacre provider start lets them go on.</Notice>}
      {data?.providers.length === 0 && (
        <Empty icon="agent" title="There is no provider yet" action={<Typed line="nacre provider add anthropic" />}>
          The agent needs somebody who answers. Add a provider on the host; it asks for the key and does not show it.
        </Empty>
      )}
      <ul className={css.list}>
        {data?.providers.map((provider) => (
          <li key={provider.name} className={css.process}>
            <p className="row wraps">
              <strong>{provider.name}</strong>
              <Badge>{provider.kind}</Badge>
              {provider.stopped && <Badge tone="bad">Stopped</Badge>}
              {provider.problem ? <Badge tone="bad">Cannot be used</Badge> : !provider.stopped && <Badge tone="good">Can be used</Badge>}
              {provider.under_way > 0 && <Badge tone="accent">{provider.under_way} under way</Badge>}
            </p>
            {provider.problem && <Notice tone="warn">{provider.problem}</Notice>}
            <Facts
              facts={[
                ["Address", <code key="a">{provider.base_url}</code>],
                ["Key", provider.key],
                ["Models", provider.models.length === 0 ? "all" : provider.models.join(", ")],
                ["Today", provider.dollars_per_day ? `${dollars(provider.dollars_today)} of ${dollars(provider.dollars_per_day)}` : dollars(provider.dollars_today)],
              ]}
            />
          </li>
        ))}
      </ul>
      <p className="small soft">
        What was spent is on the page <a href={to("usage")}>Spending</a>.
      </p>
    </Panel>
  );
}
