// The tree of files. One element has the focus and says which line is meant; lines that are not in view
// are not made.

import { defaultRangeExtractor, useVirtualizer, type Range } from "@tanstack/react-virtual";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { go, to } from "../../../app/router";
import { say, type MenuItem } from "../../../ui/overlay";
import { dropped } from "../acts/collect";
import { upload } from "../acts/uploads";
import type { Acts } from "../acts/use-acts";
import { useDrafts } from "../drafts";
import { useMarks } from "../marks.live";
import { parentOf } from "../paths";
import { ContextMenu, type MenuPlace } from "./context-menu";
import { useDrag } from "./drag";
import { useTreeKeys } from "./keys";
import { TreeNote, TreeRow } from "./row";
import { rowKey, type EntryRow, type Row } from "./rows";
import { tree } from "./store";
import css from "./tree.module.css";
import { useCoarse, useNow } from "./watches";

interface Props {
  rows: readonly Row[];
  /** What the page shows. */
  open: string;
  acts: Acts;
  sought: string;
  /** Told of the folder that something new would come into. */
  onFolder: (folder: string) => void;
  onUpload: (folder: string) => void;
}

const NEVER = -1;

export function TreeView({ rows, open, acts, sought, onFolder, onUpload }: Props) {
  const scroll = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<string | null>(null);
  const [menu, setMenu] = useState<MenuPlace | null>(null);
  const marks = useMarks();
  const drafts = useDrafts();
  const now = useNow(marks.files.size > 0);
  const height = useCoarse() ? 42 : 28;
  const at = useMemo(() => (active === null ? NEVER : rows.findIndex((row) => rowKey(row) === active)), [rows, active]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: useCallback(() => height, [height]),
    // The same function while the rows are the same: with another one every row is measured again.
    getItemKey: useCallback((index: number) => rowKey(rows[index]!), [rows]),
    overscan: 8,
    paddingStart: 4,
    paddingEnd: 24,
    // The line that is meant is always there, for who hears it.
    rangeExtractor: useCallback((range: Range) => withIndex(defaultRangeExtractor(range), at), [at]),
  });
  useEffect(() => virtual.measure(), [virtual, height]);

  const moveTo = (index: number) => {
    const row = rows[index];
    if (!row) return;
    setActive(rowKey(row));
    virtual.scrollToIndex(index);
    if (row.kind === "entry") onFolder(row.folder ? row.path : parentOf(row.path));
  };
  useRevealed(open, rows, (index) => (setActive(rowKey(rows[index]!)), virtual.scrollToIndex(index)));

  const openRow = async (row: EntryRow) => {
    if (row.entry.odd) return say("Its name is not text, so it can only be reached with a command.");
    const leads = row.entry.kind === "symlink" && !row.entry.leads ? await tree.leadsTo(row.path) : null;
    if (row.folder || leads === "directory") (row.expanded ? tree.close : tree.open).call(tree, row.path);
    else go(to("files", row.path));
  };
  const showMenu = useCallback((row: EntryRow, x: number, y: number) => setMenu({ x, y, label: `What to do with ${row.entry.name}`, items: itemsFor(row, acts, onUpload) }), [acts, onUpload]);
  const closeMenu = useCallback(() => {
    setMenu(null);
    scroll.current?.focus({ preventScroll: true });
  }, []);
  const keys = useTreeKeys(rows, at, moveTo, Math.max(1, Math.floor((scroll.current?.clientHeight ?? 300) / height) - 1), {
    open: (row) => void openRow(row),
    rename: acts.rename,
    remove: acts.remove,
    menu: (row) => {
      const box = document.getElementById(idOf(row))?.getBoundingClientRect();
      if (box) showMenu(row, box.left + 40, box.bottom);
    },
  });
  const drag = useDrag({ onMove: acts.moveInto, onFiles: (transfer, folder) => void dropped(transfer).then((incoming) => upload(folder, incoming)) });
  const click = (event: React.MouseEvent) => {
    const line = (event.target as HTMLElement).closest<HTMLElement>("[role=treeitem]");
    const index = Number(line?.dataset.index ?? NEVER);
    const row = rows[index];
    if (!row) return;
    setActive(rowKey(row));
    if (row.kind === "trouble") void tree.retry(row.path);
    if (row.kind !== "entry") return;
    onFolder(row.folder ? row.path : parentOf(row.path));
    void openRow(row);
  };
  return (
    <>
      <div
        ref={scroll}
        role="tree"
        aria-label="Files"
        tabIndex={0}
        aria-activedescendant={at >= 0 ? idOf(rows[at]!) : undefined}
        className={css.tree}
        data-target={drag.target === "" || undefined}
        onKeyDown={keys}
        onClick={click}
        onFocus={(event) => event.target === event.currentTarget && at < 0 && rows.length > 0 && setActive(rowKey(rows[0]!))}
        {...drag.handlers}
      >
        <div role="none" className={css.all} style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const row = rows[index]!;
            const shared = { id: idOf(row), index, top: start, height, active: index === at };
            if (row.kind !== "entry") return <TreeNote key={rowKey(row)} row={row} {...shared} />;
            return (
              <TreeRow
                key={row.path}
                row={row}
                {...shared}
                open={row.path === open}
                dirty={drafts.has(row.path)}
                target={drag.target === row.path}
                mark={row.folder ? (row.expanded ? undefined : marks.folders.get(row.path)) : marks.files.get(row.path)}
                now={now}
                sought={sought}
                onMenu={showMenu}
              />
            );
          })}
        </div>
      </div>
      {menu && <ContextMenu place={menu} onClose={closeMenu} />}
    </>
  );
}

const idOf = (row: Row) => `tree-${encodeURIComponent(rowKey(row))}`;

const withIndex = (indices: number[], index: number): number[] => (index < 0 || indices.includes(index) ? indices : [...indices, index].sort((a, b) => a - b));

/** Once what the page shows has come into the tree, it is brought into view; not again when more comes. */
function useRevealed(open: string, rows: readonly Row[], show: (index: number) => void): void {
  const wanted = useRef<string | null>(null);
  useEffect(() => {
    wanted.current = open;
    if (open) void tree.reveal(open);
  }, [open]);
  useEffect(() => {
    if (!wanted.current) return;
    const index = rows.findIndex((row) => row.kind === "entry" && row.path === wanted.current);
    if (index < 0) return;
    wanted.current = null;
    show(index);
  });
}

function itemsFor({ path, folder, entry }: EntryRow, acts: Acts, onUpload: (folder: string) => void): MenuItem[] {
  if (entry.odd) return [{ label: "Its name is not text", disabled: true, act: () => {} }];
  const inside: MenuItem[] = [
    { label: "New file in it", icon: "plus", act: () => acts.newFile(path) },
    { label: "New folder in it", icon: "files", act: () => acts.newFolder(path) },
    { label: "Upload into it", icon: "upload", act: () => onUpload(path) },
  ];
  return [
    ...(folder ? inside : [{ label: "Open", icon: "edit", act: () => go(to("files", path)) } as const]),
    { label: folder ? "Download as tar" : "Download", icon: "download", act: () => acts.download(path, folder) },
    { label: "History", icon: "timeline", act: () => go(to("timeline", "", { path })) },
    { label: "Rename or move", icon: "edit", act: () => acts.rename(path) },
    { label: "Copy", icon: "copy", act: () => acts.copy(path) },
    { label: "Delete", icon: "trash", danger: true, act: () => acts.remove(path) },
  ];
}
