// Back to a moment, with everything or one name: first what that would change.

import { useQuery } from "@tanstack/react-query";
import { Button, Skeleton, Trouble } from "../../ui/basics";
import { count, exactly } from "../../ui/format";
import { Dialog } from "../../ui/overlay";
import { between, status } from "./calls";
import { ChangeList } from "./changes";
import css from "./detail.module.css";
import { preview, restore, useTakingBack } from "./take-back";
import type { Checkpoint } from "./words";

const MOST_SHOWN = 200;

export function RestoreDialog({ checkpoint, path, onClose }: { checkpoint: Checkpoint; path?: string | undefined; onClose: () => void }) {
  const { id, time } = checkpoint;
  const { working } = useTakingBack();
  const { data, error, refetch } = useQuery({ queryKey: ["history", "preview", id, path ?? ""], queryFn: () => preview(id, path), gcTime: 0 });
  const { changes, total } = data?.changes ?? { changes: [], total: 0 };
  const lines = { key: ["history", "preview", id], load: (name: string) => toBecome(id, name) };
  const act = async () => {
    onClose();
    await restore(id, path);
  };
  return (
    <Dialog
      wide
      open
      title={path ? `Restore ${path}?` : `Restore everything to #${id}?`}
      onClose={onClose}
      acts={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" disabled={!data || total === 0 || working !== null} onClick={() => void act()}>
            Restore{total > 0 ? ` ${count(total, "name")}` : ""}
          </Button>
        </>
      }
    >
      {error ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : !data ? (
        <>
          <p className="soft">Looking at what would change.</p>
          <Skeleton height={120} />
        </>
      ) : total === 0 ? (
        <p>{path ? "It is" : "Everything is"} as it was then. There is nothing to restore.</p>
      ) : (
        <>
          <p>
            {path ?? "All files"} would become what {path ? "it was" : "they were"} after #{id}, {exactly(time)}, whoever changed {path ? "it" : "them"} since. You can undo this.
          </p>
          <div className={css.preview}>
            <ChangeList changes={changes.slice(0, MOST_SHOWN)} total={total} lines={lines} few={1} />
          </div>
          {data.remarks?.map(({ message }, index) => (
            <p key={index} className="soft small">
              {message}.
            </p>
          ))}
        </>
      )}
    </Dialog>
  );
}

/** From the present to what it was. */
async function toBecome(id: number, path: string) {
  const { latest } = await status();
  return (await between(latest, id, { path, limit: 1 })).changes[0];
}
