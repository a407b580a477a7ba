// Who may come in: browsers that are signed in, and tokens of programs.

import { useQuery } from "@tanstack/react-query";
import { ask, type Of } from "../../api/client";
import { gateway } from "../../api/mount";
import { Badge, LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { Panel, Typed } from "../../ui/panel";
import { Time } from "../../ui/time";
import { browser } from "./browser";
import css from "./settings.module.css";

const METHODS: Record<Of<"SignInMethod">, string> = { link: "by a link from the terminal", account: "by account", recovery_code: "by recovery code", passkey: "by passkey", unknown: "" };

export function Access() {
  return (
    <>
      <Sessions />
      <Tokens />
      <p className="small soft">Signing out browsers and ending tokens happens on a page of the gateway: this desktop can be rewritten by an agent, so it may only look.</p>
    </>
  );
}

function Sessions() {
  const { data, error, refetch } = useQuery({ queryKey: ["sessions"], queryFn: () => ask<Of<"SessionList">>("/admin/sandboxes/sessions") });
  return (
    <Panel
      title="Signed in"
      acts={
        <LinkButton small icon="external" href={gateway("/auth/me#sessions").href}>
          Your access
        </LinkButton>
      }
    >
      {error && !data && <Trouble error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height={60} />}
      {data?.sessions.length === 0 && <p className="small soft">No browser has a session.</p>}
      <ul className={css.list}>
        {data?.sessions.map((session) => (
          <li key={session.id} className={css.process}>
            <p className="row wraps">
              <strong title={session.agent ?? undefined}>{browser(session.agent)}</strong>
              {session.current && <Badge tone="accent">This browser</Badge>}
            </p>
            <p className="small soft">
              Signed in {METHODS[session.method]} <Time at={session.created_at} />
              {session.address ? ` from ${session.address}` : ""}, last used <Time at={session.seen_at} />
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Tokens() {
  const { data, error, refetch } = useQuery({ queryKey: ["tokens"], queryFn: () => ask<Of<"TokenList">>("/admin/sandboxes/tokens") });
  return (
    <Panel
      title="Tokens of programs"
      acts={
        <LinkButton small icon="external" href={gateway("/auth/me#tokens").href}>
          End tokens
        </LinkButton>
      }
    >
      {error && !data && <Trouble error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height={60} />}
      {data?.tokens.length === 0 && (
        <p className="row wraps small soft">
          No program has one. On the host: <Typed line="nacre token create NAME" />
        </p>
      )}
      <ul className={css.list}>
        {data?.tokens.map((token) => (
          <li key={token.id} className={css.process}>
            <p className="row wraps">
              <strong>{token.name}</strong>
              {token.scopes.map((scope) => (
                <Badge key={scope} tone={scope === "admin" ? "warn" : "plain"}>
                  {scope}
                </Badge>
              ))}
            </p>
            <p className="small soft">
              Made <Time at={token.created_at} />, {token.used_at ? <>last used <Time at={token.used_at} /></> : "never used"}
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
