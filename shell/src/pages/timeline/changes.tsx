// Files that changed between two moments, each with its lines when it is unfolded.

import { useQuery } from "@tanstack/react-query";
import { useId, useMemo, useState } from "react";
import { classes, Skeleton, Trouble } from "../../ui/basics";
import { Diff } from "../../ui/code";
import { readUnified } from "../../ui/diff";
import { count } from "../../ui/format";
import { Icon } from "../../ui/icons";
import { Menu, type MenuItem } from "../../ui/overlay";
import { shown } from "../files/paths";
import type { FileChange } from "./calls";
import css from "./changes.module.css";
import { deedOf, type Deed } from "./words";

/** Where the lines of a change come from when they did not come with it. */
export interface Lines {
  key: readonly unknown[];
  load: (path: string) => Promise<FileChange | undefined>;
}

interface Props {
  changes: readonly FileChange[];
  /** How many there are; more than `changes` holds when not all were asked for. */
  total: number;
  lines?: Lines;
  /** Few enough to be shown unfolded. */
  few?: number;
  acts?: (change: FileChange) => MenuItem[];
}

const SIGNS: Record<Deed, string> = { added: "+", changed: "~", removed: "−", moved: "→" };
const MOST_LINES = 1500;

export function ChangeList({ changes, total, lines, few = 3, acts }: Props) {
  return (
    <>
      <ul className={css.list}>
        {changes.map((change) => (
          <ChangeItem key={shown(change.path)} change={change} lines={lines} unfolded={changes.length <= few} acts={acts} />
        ))}
      </ul>
      {total > changes.length && <p className="soft small">And {count(total - changes.length, "more", "more")}, which are not listed. Ask for a file or folder to see less.</p>}
    </>
  );
}

const hasText = ({ old, new: now }: FileChange) => [old, now].some((side) => side?.kind === "file" || side?.kind === "symlink");

function ChangeItem({ change, lines, unfolded, acts }: { change: FileChange; lines: Lines | undefined; unfolded: boolean; acts: Props["acts"] }) {
  const unfolds = hasText(change) && typeof change.path === "string";
  const [open, setOpen] = useState(unfolded && unfolds);
  const region = useId();
  const items = acts?.(change) ?? [];
  const deed = deedOf(change);
  const name = (
    <>
      <span className={css.sign} data-deed={deed} aria-hidden="true">
        {SIGNS[deed]}
      </span>
      <span className="unseen">{deed} </span>
      <span className={css.path}>
        {shown(change.path)}
        {(change.new ?? change.old)?.kind === "directory" && "/"}
        {change.from && <span className="soft"> from {shown(change.from)}</span>}
      </span>
    </>
  );
  return (
    <li className={css.item}>
      <div className={css.head}>
        {unfolds ? (
          <button type="button" className={css.unfold} aria-expanded={open} aria-controls={region} onClick={() => setOpen(!open)}>
            <span className={classes(css.chevron, open && css.down)}>
              <Icon name="chevron" size={14} />
            </span>
            {name}
          </button>
        ) : (
          <span className={classes(css.unfold, css.flat)}>{name}</span>
        )}
        {items.length > 0 && <Menu label={`More about ${shown(change.path)}`} items={items} />}
      </div>
      <div id={region} hidden={!open}>
        {open && <ChangeLines change={change} lines={lines} />}
      </div>
    </li>
  );
}

function ChangeLines({ change, lines }: { change: FileChange; lines: Lines | undefined }) {
  const path = shown(change.path);
  const known = change.diff != null || change.omitted != null;
  const { data, error, refetch } = useQuery({
    queryKey: [...(lines?.key ?? ["none"]), "lines", path],
    queryFn: async () => (await lines?.load(path)) ?? null,
    enabled: !known && lines !== undefined,
    staleTime: 60_000,
  });
  const whole = known ? change : data;
  if (error) return <Trouble error={error} retry={() => void refetch()} />;
  if (whole === undefined && lines) return <Skeleton height={60} />;
  return <Shown change={whole ?? change} label={`Lines of ${path}`} />;
}

function Shown({ change, label }: { change: FileChange; label: string }) {
  const all = useMemo(() => readUnified(change.diff ?? ""), [change.diff]);
  if (change.omitted === "binary") return <p className={css.note}>Not text, so there are no lines to compare.</p>;
  if (change.omitted === "too_large") return <p className={css.note}>Too large to be compared line by line.</p>;
  if (all.length === 0) return <p className={css.note}>{withoutLines(change)}</p>;
  return (
    <>
      <Diff lines={all.slice(0, MOST_LINES)} label={label} />
      {all.length > MOST_LINES && <p className={css.note}>And {count(all.length - MOST_LINES, "more line")}.</p>}
    </>
  );
}

const octal = (mode: number) => (mode & 0o7777).toString(8);

function withoutLines({ old, new: now }: FileChange): string {
  if (old && now && old.mode !== now.mode) return `Its rights changed from ${octal(old.mode)} to ${octal(now.mode)}.`;
  if (old && now && (old.uid !== now.uid || old.gid !== now.gid)) return "Its owner changed.";
  return (now ?? old)?.size === 0 ? "An empty file." : "No lines changed.";
}
