// The desktop itself: where it comes from, whether it is well, and back to how it came.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { get, LONG_PATIENCE, post, Refusal } from "../../api/client";
import { address, role } from "../../api/mount";
import { useCommands, type Command } from "../../app/commands";
import { to } from "../../app/router";
import { Badge, Button, LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { Icon } from "../../ui/icons";
import { Confirm, say, sayError } from "../../ui/overlay";
import { Panel } from "../../ui/panel";
import { newestOf } from "../timeline/calls";
import { Conflicts } from "../timeline/conflicts";
import { undoExactly } from "../timeline/take-back";
import { Processes, restart, useProcesses } from "./processes";
import css from "./settings.module.css";

interface Health {
  ok: boolean;
  mode: "source" | "built" | "app" | "unknown";
  checks: readonly { name: string; ok: boolean; detail?: string | null }[];
}

const MODES: Record<Health["mode"], string> = {
  source: "It runs from its source in /workspace/shell. You and the agent may change every part of it while it is open.",
  built: "It is the copy that came with Nacre, which nothing in the sandbox can change.",
  app: "An app of yours has the page at /. This desktop is the copy that came with Nacre.",
  unknown: "It is not known where it comes from.",
};
const CHECKS: Record<string, string> = { process: "Its process runs and answers", page: "The page answers", entry: "Its scripts load", modules: "Its modules are there" };

export function Desktop() {
  const { data: health, error, refetch } = useQuery({ queryKey: ["health", "desktop"], queryFn: () => get<Health>("/supervisor/desktop/health"), refetchInterval: 10_000, retry: false });
  const tooOld = error instanceof Refusal && error.status === 404;
  return (
    <>
      <Panel
        title="This desktop"
        acts={health && <Badge tone={health.ok ? "good" : "bad"}>{health.ok ? "Well" : "Not well"}</Badge>}
        about={MODES[document.documentElement.dataset.nacre === "built" ? "built" : (health?.mode ?? "source")]}
      >
        {!health && !error && <Skeleton height={84} />}
        {error && !tooOld && !health && <Trouble error={error} retry={() => void refetch()} />}
        {tooOld && <p className="small soft">This supervisor cannot tell how the desktop is. Restart the sandbox to give it the current one.</p>}
        {health && (
          <ul className={css.checks}>
            {health.checks.map((check) => (
              <li key={check.name} data-ok={check.ok || undefined}>
                <Icon name={check.ok ? "check" : "close"} size={16} />
                <span>
                  <span className="unseen">{check.ok ? "Holds: " : "Fails: "}</span>
                  {CHECKS[check.name] ?? check.name}
                  {check.detail && <span className="small soft"> {check.detail}</span>}
                </span>
              </li>
            ))}
          </ul>
        )}
        <div className="row wraps">
          <LinkButton icon="files" href={to("files", "shell/src")}>
            Its source
          </LinkButton>
          <LinkButton icon="timeline" href={to("timeline", "", { path: "shell" })}>
            Its changes
          </LinkButton>
          <LinkButton icon="external" href={address("/supervisor/desktop/").href}>
            The copy that came with Nacre
          </LinkButton>
          <LinkButton icon="warning" href={address("/supervisor/rescue").href}>
            Rescue page
          </LinkButton>
        </div>
      </Panel>
      <Processes />
      <Reset />
      <Conflicts />
    </>
  );
}

/** By now it is recorded, and the newest change of that folder, unless someone was faster. */
async function sayReset(): Promise<void> {
  const checkpoint = await newestOf("shell").catch(() => null);
  const ours = checkpoint?.authors.some((author) => author.kind === "api" && author.call === "seed desktop anew");
  say("The desktop is as it came", ours ? { label: "Undo", act: () => void undoExactly(checkpoint!.id) } : undefined);
}

function Reset() {
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const run = () => {
    setBusy(true);
    post<{ seeded: boolean; why?: string | null }>("/supervisor/desktop/seed", { replace: true }, { patience: LONG_PATIENCE })
      .then(({ seeded, why }) => (seeded ? sayReset() : say(`Nothing was changed: ${why ?? "no reason was given"}`)))
      .catch(sayError)
      .finally(() => {
        setBusy(false);
        void client.invalidateQueries({ queryKey: ["health"] });
      });
  };
  useOffered(() => setAsking(true));
  return (
    <Panel title="Back to how it came" about="Puts the source that came with Nacre in the place of /workspace/shell. It is one change in the timeline, and can be undone.">
      <div>
        <Button icon="undo" busy={busy} onClick={() => setAsking(true)}>
          Reset the desktop
        </Button>
      </div>
      <Confirm
        title="Reset the desktop?"
        open={asking}
        words="What you and the agent changed in /workspace/shell is replaced by the desktop as it came. You can undo it in the timeline."
        act={{ label: "Reset the desktop", run }}
        onClose={() => setAsking(false)}
      />
    </Panel>
  );
}

/** The process that serves this page: below /dev/ the app has one of its own. */
function useOffered(reset: () => void): void {
  const { data } = useProcesses();
  const names = data?.processes.map(({ name }) => name) ?? [];
  const name = [role === "dev" ? "runtime@dev" : "runtime", "runtime"].find((one) => names.includes(one));
  const commands = useMemo((): Command[] => {
    const again: Command = { id: "restart-desktop", name: "Restart the desktop", icon: "refresh", also: "process runtime vite", act: () => void restart(name!).then(() => say("The desktop starts again"), sayError) };
    return [...(name ? [again] : []), { id: "reset-desktop", name: "Reset the desktop to how it came", icon: "undo", also: "seed original", act: reset }];
    // `reset` only opens the question.
  }, [name]);
  useCommands(commands);
}
