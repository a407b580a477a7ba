// What each provider may cost in a day, and has.

import { gateway } from "../../api/mount";
import { Badge, LinkButton, Skeleton } from "../../ui/basics";
import { dollars, short } from "../../ui/format";
import { Meter, Panel } from "../../ui/panel";
import type { Of } from "../../api/client";
import { useProviders } from "./data";
import css from "./usage.module.css";

export function Budgets() {
  const { data, isPending } = useProviders();
  if (isPending) return <Skeleton height={120} />;
  if (!data || data.providers.length === 0) return null;
  return (
    <Panel
      title="Today"
      about="Budgets of a day begin again at 00:00 UTC."
      acts={
        <LinkButton small icon="external" href={gateway("/admin/sandboxes/models").href}>
          Providers
        </LinkButton>
      }
    >
      {data.stopped && <Badge tone="bad">All calls are stopped</Badge>}
      <ul className={css.budgets}>
        {data.providers.map((provider) => (
          <Budget key={provider.name} provider={provider} />
        ))}
      </ul>
    </Panel>
  );
}

function Budget({ provider }: { provider: Of<"ProviderInfo"> }) {
  const { name, dollars_today: spent, tokens_today: tokens, dollars_per_day: most, tokens_per_day: mostTokens } = provider;
  const cost = most ? `${dollars(spent)} of ${dollars(most)}` : dollars(spent);
  const words = mostTokens ? `${short(tokens)} of ${short(mostTokens)} tokens` : `${short(tokens)} tokens`;
  return (
    <li className="column">
      <p className="row">
        <strong className="grow cut-off">{name}</strong>
        {provider.stopped && <Badge tone="bad">Stopped</Badge>}
        <span>{cost}</span>
      </p>
      {most ? <Meter label={`Budget of ${name}`} value={spent} most={most} words={cost} /> : null}
      {mostTokens ? <Meter label={`Tokens of ${name}`} value={tokens} most={mostTokens} words={words} /> : null}
      <p className="small soft">
        {words}
        {!most && !mostTokens && ", no budget of its own"}
      </p>
    </li>
  );
}
