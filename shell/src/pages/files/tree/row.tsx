// One line of the tree. Of as few elements as it takes: many of them are made anew in every frame of
// scrolling, and in a desktop that is being changed each of them costs more.

import { memo, useEffect } from "react";
import { inWords } from "../../../api/client";
import { classes, Spinner } from "../../../ui/basics";
import { Icon } from "../../../ui/icons";
import type { Mark } from "../marks";
import { FileMark, FolderMark } from "./mark";
import { isHeavy } from "./model";
import type { EntryRow, NoteRow } from "./rows";
import { tree } from "./store";
import css from "./tree.module.css";

interface Props {
  row: EntryRow;
  id: string;
  index: number;
  top: number;
  height: number;
  active: boolean;
  /** It is what the page shows. */
  open: boolean;
  dirty: boolean;
  target: boolean;
  mark: Mark | undefined;
  now: number;
  /** The part of its name that is looked for. */
  sought: string;
  onMenu: (row: EntryRow, x: number, y: number) => void;
}

export const TreeRow = memo(function TreeRow({ row, id, index, top, height, active, open, dirty, target, mark, now, sought, onMenu }: Props) {
  const { entry, folder, expanded, level, path, size, position } = row;
  return (
    <div
      id={id}
      role="treeitem"
      aria-level={level}
      aria-setsize={size}
      aria-posinset={position}
      aria-expanded={folder && !entry.odd ? expanded : undefined}
      aria-selected={open}
      data-path={path}
      data-index={index}
      data-folder={folder || undefined}
      draggable={!entry.odd}
      className={classes(css.row, active && css.active, open && css.open, target && css.target, isHeavy(entry.name) && css.heavy)}
      style={{ height, transform: `translateY(${top}px)`, paddingLeft: 8 + (level - 1) * 14 }}
      title={entry.target ? `${entry.name} → ${entry.target}` : undefined}
      onContextMenu={(event) => (event.preventDefault(), onMenu(row, event.clientX, event.clientY))}
    >
      <Icon name={folder ? "files" : entry.kind === "symlink" ? "link" : "file"} size={16} />
      <span className={classes("cut-off grow", entry.leads === "nowhere" && css.lost)}>{sought ? <Name name={entry.name} sought={sought} /> : entry.name}</span>
      {dirty && (
        <span className={css.dirty} title="Not saved">
          <span className="unseen">, not saved</span>
        </span>
      )}
      {mark && (folder ? <FolderMark mark={mark} now={now} /> : <FileMark mark={mark} now={now} />)}
      <button
        type="button"
        tabIndex={-1}
        className={css.more}
        aria-label={`What to do with ${entry.name}`}
        onClick={(event) => {
          event.stopPropagation();
          const { left, bottom } = event.currentTarget.getBoundingClientRect();
          onMenu(row, left, bottom);
        }}
      >
        ⋯
      </button>
    </div>
  );
});

function Name({ name, sought }: { name: string; sought: string }) {
  const at = name.toLowerCase().indexOf(sought);
  if (at < 0) return name;
  return (
    <>
      {name.slice(0, at)}
      <mark className={css.sought}>{name.slice(at, at + sought.length)}</mark>
      {name.slice(at + sought.length)}
    </>
  );
}

/** A line that speaks of a folder. Being in view is what makes it ask. */
export function TreeNote({ row, id, index, top, height, active }: Pick<Props, "id" | "index" | "top" | "height" | "active"> & { row: NoteRow }) {
  const { kind, path, level } = row;
  useEffect(() => {
    if (kind === "loading") void tree.load(path);
    if (kind === "more") void tree.more(path);
  });
  return (
    <div
      id={id}
      role="treeitem"
      aria-level={level}
      aria-selected={false}
      data-index={index}
      className={classes(css.row, css.note, active && css.active)}
      style={{ height, transform: `translateY(${top}px)`, paddingLeft: 27 + (level - 1) * 14 }}
    >
      {kind === "loading" || kind === "more" ? (
        <>
          <Spinner /> {kind === "more" ? "Loading more" : "Loading"}
        </>
      ) : kind === "empty" ? (
        "Empty"
      ) : (
        <span className={classes("cut-off", css.lost)} title={inWords(tree.get().troubles.get(path))}>
          {inWords(tree.get().troubles.get(path))} Enter tries again.
        </span>
      )}
    </div>
  );
}
