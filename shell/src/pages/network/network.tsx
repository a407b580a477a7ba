// Network: what the sandbox may reach and did reach, and what listens in it.

import { role as here } from "../../api/mount";
import { go, to } from "../../app/router";
import { Choice } from "../../ui/basics";
import { PageFrame } from "../../ui/page";
import { useHasDev } from "./data";
import { Log } from "./logview";
import type { Wanted } from "./log";
import { Ports } from "./ports";
import { Rules } from "./rules";

const VERDICTS: readonly Wanted[] = ["all", "made", "refused", "failed"];

export default function Page({ query }: { query: URLSearchParams }) {
  const hasDev = useHasDev();
  const asked = query.get("role");
  const role = asked === "live" || asked === "dev" ? asked : here;
  const wanted = VERDICTS.find((verdict) => verdict === query.get("verdict")) ?? "all";
  const change = (next: Record<string, string>) => {
    const all = { ...Object.fromEntries(query), ...next };
    go(to("network", "", Object.fromEntries(Object.entries(all).filter(([, value]) => value !== "" && value !== "all"))), "replace");
  };
  return (
    <PageFrame
      title="Network"
      acts={
        hasDev && (
          <Choice
            label="Of which sandbox"
            value={role}
            options={[
              { value: "live", label: "live" },
              { value: "dev", label: "dev" },
            ]}
            onChange={(next) => change({ role: next })}
          />
        )
      }
    >
      <Rules role={role} />
      <Ports role={role} />
      <Log role={role} wanted={wanted} host={query.get("host") ?? ""} change={change} />
    </PageFrame>
  );
}
