// The tree with its filter, and what is on its way up.

import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { to } from "../../../app/router";
import { Empty, IconButton, Input, Spinner } from "../../../ui/basics";
import { count } from "../../../ui/format";
import { Icon } from "../../../ui/icons";
import { DropZone } from "../acts/drop-zone";
import { UploadPanel } from "../acts/upload-panel";
import type { Acts } from "../acts/use-acts";
import { useDrafts } from "../drafts";
import { nameOf } from "../paths";
import { filtered, flatten, wordsOf } from "./rows";
import { useSearch } from "./search";
import { tree, useTree } from "./store";
import { TreeView } from "./tree";
import css from "./tree.module.css";

interface Props {
  open: string;
  acts: Acts;
  onFolder: (folder: string) => void;
  onUpload: (folder: string) => void;
}

export function TreePane({ open, acts, onFolder, onUpload }: Props) {
  const { model, expanded, troubles } = useTree();
  const [filter, setFilter] = useState("");
  const words = useDeferredValue(filter);
  const searched = useSearch(filter);
  useEffect(() => void tree.load(""), []);
  const rows = useMemo(() => {
    const sought = wordsOf(words);
    return sought.length > 0 ? filtered(model, expanded, sought) : flatten(model, expanded, troubles);
  }, [model, expanded, troubles, words]);
  const found = useMemo(() => (words.trim() ? rows.filter((row) => row.kind === "entry" && !row.expanded).length : 0), [rows, words]);
  const bare = model.get("")?.entries.length === 0;
  return (
    <div className={css.pane}>
      <div className={css.filter}>
        <Icon name="search" size={16} />
        <Input aria-label="Find files by name" placeholder="Find files" value={filter} onChange={(event) => setFilter(event.target.value)} onKeyDown={(event) => event.key === "Escape" && setFilter("")} />
        {filter && <IconButton small label="Show all files" icon="close" onClick={() => setFilter("")} />}
      </div>
      {words.trim() !== "" && (
        <div className={css.said} role="status">
          {searched !== null && <Spinner />}
          {count(found, "match", "matches")}
          {searched !== null && `, ${count(searched, "folder")} looked into`}
        </div>
      )}
      <Unsaved open={open} />
      {bare && !words ? (
        <DropZone folder="">
          <Empty icon="files" title="No files yet">
            Drop some here, make one, or ask the agent for something.
          </Empty>
        </DropZone>
      ) : (
        <TreeView rows={rows} open={open} acts={acts} sought={wordsOf(words).find((word) => !word.includes("/")) ?? ""} onFolder={onFolder} onUpload={onUpload} />
      )}
      <UploadPanel />
    </div>
  );
}

/** What was changed elsewhere and not saved, so that it is not forgotten. */
function Unsaved({ open }: { open: string }) {
  const others = [...useDrafts().keys()].filter((path) => path !== open);
  if (others.length === 0) return null;
  return (
    <div className={css.said}>
      <span className={css.dirty} />
      <span className="cut-off">
        Not saved:{" "}
        {others.slice(0, 3).map((path, index) => (
          <span key={path}>
            {index > 0 && ", "}
            <a href={to("files", path)}>{nameOf(path)}</a>
          </span>
        ))}
        {others.length > 3 && ` and ${others.length - 3} more`}
      </span>
    </div>
  );
}
