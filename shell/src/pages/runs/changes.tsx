// What a run did to the files.

import { useState } from "react";
import type { Of } from "../../api/client";
import { gateway } from "../../api/mount";
import { Empty, LinkButton, Notice, Skeleton, Trouble } from "../../ui/basics";
import { Diff } from "../../ui/code";
import { readUnified, tally } from "../../ui/diff";
import { count, size } from "../../ui/format";
import { Icon } from "../../ui/icons";
import { usePatch } from "./data";
import type { FilePatch } from "./patch";
import css from "./runs.module.css";
import { isOver } from "./words";

const LONGEST = 3000;

export function Changes({ run }: { run: Of<"RunInfo"> }) {
  const { changes, id } = run;
  const touched = (changes?.added ?? 0) + (changes?.changed ?? 0) + (changes?.removed ?? 0);
  const patch = usePatch(id, isOver(run) && touched > 0);
  if (!isOver(run)) return <Empty icon="file" title="It is not over yet">What it changed is here when it has ended.</Empty>;
  if (touched === 0) return <Empty icon="file" title="It changed no files">{changes?.incomplete}</Empty>;
  const at = (what: string) => gateway(`/admin/sandboxes/runs/${encodeURIComponent(id)}/${what}`).href;
  const left = changes?.paths.filter((path) => path.left_out) ?? [];
  return (
    <div className="column">
      <div className="row wraps">
        <span className="grow small soft">
          {count(changes?.added ?? 0, "file")} added, {changes?.changed} changed, {changes?.removed} removed, {size(changes?.bytes ?? 0)}
        </span>
        <LinkButton small icon="download" href={at("files")} download={`${id}.tar`}>
          Files
        </LinkButton>
        <LinkButton small icon="download" href={at("patch")} download={`${id}.patch`}>
          Patch
        </LinkButton>
      </div>
      {changes?.incomplete && <Notice tone="warn">{changes.incomplete}</Notice>}
      {patch.error && <Trouble error={patch.error} retry={() => void patch.refetch()} />}
      {patch.isLoading && <Skeleton height={160} />}
      {patch.data?.map((file) => <File key={file.path} file={file} open={patch.data.length <= 6} />)}
      {left.length > 0 && (
        <ul className="small soft">
          {left.map((path) => (
            <li key={String(path.path)}>
              <code>{typeof path.path === "string" ? path.path : "a name that is no text"}</code>: {path.left_out}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

const SIGNS = { added: "plus", changed: "edit", removed: "trash" } as const;

function File({ file: { path, change, diff }, open }: { file: FilePatch; open: boolean }) {
  // Those that are closed are not worth drawing.
  const [shown, setShown] = useState(open);
  const lines = readUnified(diff);
  const { added, cut } = tally(lines);
  return (
    <details className={css.unfolds} open={open} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary className={css.call}>
        <Icon name={SIGNS[change]} size={16} />
        <span className="grow cut-off mono">{path}</span>
        <span className="unseen">{change},</span>
        <span className={css.added}>+{added}</span>
        <span className={css.cut}>−{cut}</span>
      </summary>
      {shown && <Diff lines={lines.slice(0, LONGEST)} label={`Changes of ${path}`} />}
      {lines.length > LONGEST && <p className="small soft">The rest is in the patch, which you can download.</p>}
    </details>
  );
}
