// Taking back what a step, a turn or all of a conversation changed, and what follows from that.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import type { Of } from "../../api/client";
import { useEvent } from "../../api/events";
import { count } from "../../ui/format";
import { say, sayError } from "../../ui/overlay";
import { undo, useRoles, type Role, type Undo } from "./calls";
import { checkpointsOf, redo } from "./place";
import { mark, type Call, type View } from "./view";

export interface Scope {
  step?: number;
  turn?: number;
}

/** An undo that waits for a word of the owner: about conflicts, or whether to do it at all. */
export interface Open {
  scope: Scope;
  found: Of<"UndoneList">;
  why: "conflicts" | "preview";
}

export interface Undoing {
  busy: boolean;
  open: Open | null;
  /** Takes it back; all of the conversation is looked at first. */
  start: (scope: Scope) => void;
  /** With an answer to what was open. */
  go: (how: Pick<Undo, "choices" | "on_conflict">) => void;
  close: () => void;
}

const conflicts = (found: Of<"UndoneList">) => found.sandboxes.some(({ outcome }) => outcome.conflicts.length > 0);

export function useUndo(id: string): Undoing {
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState<Open | null>(null);
  const client = useQueryClient();
  const { data: roles } = useRoles();
  const perform = useCallback(
    async (scope: Scope, how: Undo) => {
      setBusy(true);
      try {
        const found = await undo(id, { ...scope, ...how });
        if (how.dry_run) setOpen({ scope, found, why: "preview" });
        else if (conflicts(found)) setOpen({ scope, found, why: "conflicts" });
        else {
          setOpen(null);
          tell(found, roles, () => client.invalidateQueries({ queryKey: ["undone", id] }));
        }
      } catch (error) {
        sayError(error);
      } finally {
        setBusy(false);
      }
    },
    [id, roles, client],
  );
  const start = useCallback((scope: Scope) => void perform(scope, { dry_run: scope.step === undefined && scope.turn === undefined }), [perform]);
  const go = useCallback((how: Pick<Undo, "choices" | "on_conflict">) => open && void perform(open.scope, how), [open, perform]);
  return { busy, open, start, go, close: useCallback(() => setOpen(null), []) };
}

/** What came of it, with a way back. */
function tell(done: Of<"UndoneList">, roles: Of<"RolesStatus"> | undefined, redone: () => Promise<void>): void {
  const changed = done.sandboxes.filter(({ outcome }) => outcome.checkpoint);
  if (changed.length === 0) return say("There was nothing to take back: the files are as they were before");
  const files = changed.reduce((sum, { outcome }) => sum + outcome.changes.total, 0);
  const named = changed.map(({ sandbox }) => sandbox);
  const back = (["live", "dev"] as const).filter((role) => named.includes(roles?.[role]?.name ?? role));
  const act = () =>
    void Promise.all(back.map(redo)).then((all) => {
      const refused = all.some((outcome) => outcome.conflicts.length > 0);
      if (refused) say("Some of these files were changed meanwhile: look at the timeline", undefined, "bad");
      else say("It is there again");
      return redone();
    }, sayError);
  const gone = done.lost?.length ? "; a sandbox it worked in is gone, and its files with it" : "";
  say(`Took back ${count(files, "change")} of files on ${named.join(" and ")}${gone}`, back.length > 0 ? { label: "Redo", act } : undefined);
}

/**
 * Whether what a call changed is taken back. History knows, also of what was undone or redone elsewhere;
 * where it cannot be asked, the conversation's own events tell.
 */
export function useTakenBack(id: string, view: View): (call: Call) => boolean {
  const client = useQueryClient();
  const { data: roles } = useRoles();
  const acted = (role: Role) => roles?.[role]?.id && view.turns.some(({ sandbox }) => sandbox === roles[role]?.id);
  const where = (["live", "dev"] as const).filter(acted);
  const { data: known } = useQuery({
    queryKey: ["undone", id, where.map((role) => roles?.[role]?.id), view.undone.size],
    queryFn: async () => new Map((await Promise.all(where.map(async (role) => ask(role, id, roles?.[role]?.id ?? "")))).flat()),
    enabled: where.length > 0 && !view.working,
    staleTime: 60_000,
  });
  const again = useCallback(() => void client.invalidateQueries({ queryKey: ["undone", id] }), [client, id]);
  useEvent("restored", again);
  const { undone } = view;
  return useCallback((call: Call) => call.checkpoints.length > 0 && call.checkpoints.every((checkpoint) => known?.get(mark(call.sandbox, checkpoint)) ?? undone.has(mark(call.sandbox, checkpoint))), [known, undone]);
}

async function ask(role: Role, id: string, sandbox: string): Promise<[string, boolean][]> {
  const { checkpoints } = await checkpointsOf(role, id);
  return checkpoints.map(({ id: checkpoint, undone }) => [mark(sandbox, checkpoint), undone ?? false]);
}
