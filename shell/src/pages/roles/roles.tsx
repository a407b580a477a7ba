// live and dev side by side: how each is, and what it takes to make one the other.

import { useMemo } from "react";
import { gateway } from "../../api/mount";
import { useCommands } from "../../app/commands";
import type { Of } from "../../api/client";
import { Empty, LinkButton, Skeleton, Spinner, Trouble } from "../../ui/basics";
import { count, duration, size } from "../../ui/format";
import { PageFrame } from "../../ui/page";
import { Panel } from "../../ui/panel";
import { useRoles } from "./data";
import { Diagram } from "./diagram";
import { Promote, useChecks, Why } from "./promote";
import css from "./roles.module.css";
import { Side } from "./side";
import { LastSwap } from "./swaps";

export default function Page() {
  const { data: roles, error, refetch } = useRoles();
  const checks = useChecks();
  const { run } = checks;
  const hasDev = Boolean(roles?.dev);
  useCommands(
    useMemo(
      () => [
        ...(hasDev ? [{ id: "check-dev", name: "Check dev", icon: "check" as const, also: "promote swap", act: () => void run() }] : []),
        { id: "promote", name: "Promote dev (gateway)", icon: "roles" as const, also: "swap live", act: () => location.assign(gateway("/admin/sandboxes/promote")) },
      ],
      [hasDev, run],
    ),
  );
  return (
    <PageFrame
      title="Live and dev"
      acts={
        <LinkButton small icon="external" href={gateway("/admin/sandboxes").href}>
          All sandboxes
        </LinkButton>
      }
    >
      {error && !roles && <Trouble error={error} retry={() => void refetch()} />}
      {!roles && !error && <Waiting />}
      {roles && (
        <>
          <div className="card">
            <Diagram live={roles.live ?? undefined} dev={roles.dev ?? undefined} />
          </div>
          <div className={css.sides}>
            {roles.live ? <Side role="live" box={roles.live} /> : <NoLive />}
            {roles.dev ? <Side role="dev" box={roles.dev} /> : <NoDev copying={roles.copying ?? undefined} />}
          </div>
          {roles.dev && <Promote checks={checks} canRollBack={roles.last_swap?.before === roles.dev.id} />}
          {roles.last_swap && <LastSwap swap={roles.last_swap} />}
        </>
      )}
    </PageFrame>
  );
}

function Waiting() {
  return (
    <div className="column" role="status" aria-label="Loading">
      <Skeleton height={210} />
      <div className={css.sides}>
        <Skeleton height={320} />
        <Skeleton height={320} />
      </div>
    </div>
  );
}

function NoLive() {
  return (
    <Panel title="live">
      <Empty icon="roles" title="There is no live sandbox">
        On the host: <code>nacre sandbox create live --start</code>
      </Empty>
    </Panel>
  );
}

function NoDev({ copying }: { copying: Of<"CopyProgress"> | undefined }) {
  if (copying) {
    return (
      <Panel title="dev" about="It is being made.">
        <div className="row" role="status">
          <Spinner />
          Copying live: {count(copying.files, "file")}, {size(copying.bytes)}, {duration(copying.elapsed_ms)}.
        </div>
      </Panel>
    );
  }
  return (
    <Panel title="dev">
      <Empty
        icon="fork"
        title="There is no dev yet"
        action={
          <LinkButton look="primary" icon="plus" href={gateway("/admin/sandboxes#dev").href}>
            Make dev
          </LinkButton>
        }
      >
        It is a copy of live with its files, its history and what is installed. Try things there, and swap when they are good.
      </Empty>
      <Why />
    </Panel>
  );
}
