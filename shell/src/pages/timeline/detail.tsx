// One moment: who did what then, line by line, and what can be done about it.

import { useState } from "react";
import { to } from "../../app/router";
import { Button, Empty, IconButton, Skeleton, Trouble } from "../../ui/basics";
import { exactly } from "../../ui/format";
import { Menu, type MenuItem } from "../../ui/overlay";
import { shown as readable } from "../files/paths";
import { show as showChanges, type FileChange } from "./calls";
import { ChangeList } from "./changes";
import css from "./detail.module.css";
import { Headline } from "./headline";
import { LabelDialog } from "./label";
import { show, type Shown } from "./place";
import { RestoreDialog } from "./restore";
import { undoExactly, undoWithin, useTakingBack } from "./take-back";
import page from "./timeline.module.css";
import { useChanges, useCheckpoint } from "./use-feed";
import { VersionDialog, type WhichVersion } from "./version";
import { filesIn, type Checkpoint } from "./words";

const MOST_FILES = 500;

interface Props {
  id: number;
  known: Checkpoint | undefined;
  shown: Shown;
  onCompare: () => void;
}

export function Detail({ id, known, shown, onCompare }: Props) {
  const asked = useCheckpoint(id, known);
  const checkpoint = known ?? asked.data;
  if (asked.error && !known) return <Centred>{<Trouble error={asked.error} retry={() => void asked.refetch()} />}</Centred>;
  if (checkpoint === undefined) return <Centred>{<Skeleton height={120} />}</Centred>;
  if (checkpoint === null) {
    return (
      <Empty icon="timeline" title={`There is no moment #${id}`} action={<Button onClick={() => show(shown, { id: null, compare: null })}>Back to the list</Button>}>
        It may have been merged with others to save space.
      </Empty>
    );
  }
  return <Opened checkpoint={checkpoint} shown={shown} onCompare={onCompare} />;
}

const Centred = ({ children }: { children: React.ReactNode }) => <div className={css.body}>{children}</div>;

type Asking = { what: "label" } | { what: "restore"; path?: string } | { what: "version"; version: WhichVersion } | null;

function Opened({ checkpoint, shown, onCompare }: { checkpoint: Checkpoint; shown: Shown; onCompare: () => void }) {
  const { id } = checkpoint;
  const { data, error, refetch } = useChanges(id, MOST_FILES);
  const { working } = useTakingBack();
  const [asking, setAsking] = useState<Asking>(null);
  const close = () => setAsking(null);
  const more: MenuItem[] = [
    { label: "Compare with now", icon: "fork", act: () => show(shown, { compare: "now" }) },
    { label: "Compare with another moment", icon: "timeline", act: onCompare },
    { label: checkpoint.label ? "Change its name" : "Name this moment", icon: "edit", act: () => setAsking({ what: "label" }) },
  ];
  return (
    <>
      <header className={css.bar}>
        <IconButton className={page.back} label="Back to the list" icon="chevron" style={{ rotate: "180deg" }} onClick={() => show(shown, { id: null, compare: null })} />
        <span className="grow cut-off soft small">
          <span className={page.wide}>{exactly(checkpoint.time)}</span>
        </span>
        {checkpoint.cause.kind !== "first" && (
          <Button small icon="undo" disabled={working !== null || checkpoint.undone} busy={working === "undo"} onClick={() => void undoExactly(id)} title="Takes back exactly this; what came later stays">
            {checkpoint.undone ? "Undone" : "Undo this"}
          </Button>
        )}
        <Button small icon="timeline" disabled={working !== null} onClick={() => setAsking({ what: "restore" })} title="Sets all files to what they were after this">
          Restore…
        </Button>
        <Menu label="More about this moment" items={more} />
      </header>
      <div className={css.body}>
        <Headline checkpoint={checkpoint} first={data?.changes[0] ? readable(data.changes[0].path) : undefined} />
        {error ? (
          <Trouble error={error} retry={() => void refetch()} />
        ) : !data ? (
          Array.from({ length: Math.min(6, filesIn(checkpoint)) }, (_, index) => <Skeleton key={index} height={30} />)
        ) : (
          <ChangeList
            changes={data.changes}
            total={data.total}
            lines={{ key: ["checkpoint", id], load: async (path) => (await showChanges(id, { path, diff: true, limit: 1 })).changes[0] }}
            acts={(change) => actsFor(change, id, setAsking)}
          />
        )}
      </div>
      {asking?.what === "label" && <LabelDialog checkpoint={checkpoint} onClose={close} />}
      {asking?.what === "restore" && <RestoreDialog checkpoint={checkpoint} path={asking.path} onClose={close} />}
      {asking?.what === "version" && <VersionDialog version={asking.version} onClose={close} />}
    </>
  );
}

/** What can be done about one file of a moment. */
function actsFor(change: FileChange, id: number, ask: (asking: Asking) => void): MenuItem[] {
  const { path, old, new: now } = change;
  if (typeof path !== "string") return [];
  const items: MenuItem[] = [];
  const look = (label: string, side: typeof old, when: string) => {
    const content = side?.content;
    if (side && content) items.push({ label, icon: "file", act: () => ask({ what: "version", version: { path, content, size: side.size, when } }) });
  };
  look("As it was after this", now, `after #${id}`);
  look("As it was before this", old, `before #${id}`);
  items.push({ label: "Restore only this to this moment", icon: "timeline", act: () => ask({ what: "restore", path }) });
  items.push({ label: "Undo this in only this file", icon: "undo", act: () => void undoWithin(id, path) });
  items.push({ label: "All its history", icon: "search", act: () => (location.hash = to("timeline", String(id), { path })) });
  if (now && now.kind !== "directory") items.push({ label: "Open it", icon: "edit", act: () => (location.hash = to("files", path)) });
  return items;
}
