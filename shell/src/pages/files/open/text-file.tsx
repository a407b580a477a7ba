// A text and its editor, which is loaded when the first text is opened.

import { useQuery } from "@tanstack/react-query";
import { Suspense, useEffect, useMemo } from "react";
import { Refusal } from "../../../api/client";
import { useCommands, type Command } from "../../../app/commands";
import { prefer, usePreferences } from "../../../app/preferences";
import { onDemand } from "../../../app/on-demand";
import { go, to } from "../../../app/router";
import { Badge, Button, Skeleton, Trouble } from "../../../ui/basics";
import type { Acts } from "../acts/use-acts";
import { read, type Stat } from "../calls";
import css from "../files.module.css";
import { nameOf } from "../paths";
import { FileBar } from "./bar";
import { Conflict, TroubleBar } from "./conflict";
import type { Version } from "./document";
import { AsText } from "./media";
import { Missing, NotShown } from "./notes";
import { useDocument } from "./use-document";

const Editor = onDemand(() => import("./editor"));

interface Props {
  path: string;
  stat: Stat;
  line: number | undefined;
  acts: Acts;
  onBack: () => void;
  /** It is a picture, too. */
  asPicture: (() => void) | undefined;
}

export function TextFile(props: Props) {
  const { path, stat, acts, onBack } = props;
  const { data, error, refetch } = useQuery({ queryKey: ["files", "text", path], queryFn: () => read(path), staleTime: 0 });
  const gone = error instanceof Refusal && error.status === 404;
  const disk = useMemo(() => (gone ? "gone" : data?.kind === "text" ? data : null), [gone, data]);
  if (data?.kind === "binary" && !gone) return <NotShown path={path} stat={stat} acts={acts} onBack={onBack} why="It is not text, so it cannot be edited here." />;
  if (disk && data) return <Opened {...props} disk={disk} />;
  return (
    <>
      <FileBar path={path} onBack={onBack} />
      <div className={css.body}>{gone ? <Missing path={path} /> : error ? <Trouble error={error} retry={() => void refetch()} /> : <Skeleton height={240} />}</div>
    </>
  );
}

function Opened({ path, disk, line, acts, onBack, asPicture }: Props & { disk: Version | "gone" }) {
  const { editorWrap } = usePreferences();
  const opened = useDocument(path, disk);
  const { document, save, saving, handle } = opened;
  useSaveKey(save, document.dirty && !saving);
  useCommands(
    useMemo(
      (): Command[] => [
        { id: "file-save", name: `Save ${nameOf(path)}`, icon: "check", keys: "Ctrl S", act: () => void save() },
        { id: "file-find", name: "Find in this file", icon: "search", keys: "Ctrl F", act: () => handle.current?.find() },
        { id: "file-history", name: "History of this file", icon: "timeline", act: () => go(to("timeline", "", { path })) },
        { id: "file-download", name: "Download this file", icon: "download", act: () => acts.download(path, false) },
        { id: "file-wrap", name: editorWrap ? "Do not wrap long lines" : "Wrap long lines", icon: "edit", act: () => prefer({ editorWrap: !editorWrap }) },
      ],
      [path, save, handle, acts, editorWrap],
    ),
  );
  return (
    <>
      <FileBar path={path} onBack={onBack} acts={acts} items={[{ label: "Find in it", icon: "search", act: () => handle.current?.find() }]}>
        {document.dirty && <Badge tone="warn">not saved</Badge>}
        {asPicture && <AsText path={path} shown="text" />}
        <Button small look={document.dirty ? "primary" : "plain"} busy={saving} disabled={!document.dirty} title="Save (Ctrl S)" onClick={() => void save()}>
          Save
        </Button>
      </FileBar>
      <TroubleBar path={path} opened={opened} />
      <Suspense fallback={<div className={css.body} role="status" aria-label="Loading the editor"><Skeleton height={240} /></div>}>
        <Editor path={path} initial={opened.initial} base={document.base.text} line={line} onReady={opened.ready} onEdited={opened.edited} />
      </Suspense>
      {opened.looking && document.trouble?.kind === "changed" && <Conflict path={path} opened={opened} disk={document.trouble.disk} />}
    </>
  );
}

/** Ctrl S saves wherever the focus is; the browser's own dialog helps nobody here. */
function useSaveKey(save: () => Promise<void>, can: boolean): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "s") return;
      event.preventDefault();
      if (can) void save();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [save, can]);
}

