// Files: the tree on one side, what is open on the other. On a narrow screen one after the other.

import { useMemo, useState } from "react";
import { useCommands, type Command } from "../../app/commands";
import { go, to } from "../../app/router";
import { classes, IconButton } from "../../ui/basics";
import { Menu } from "../../ui/overlay";
import { PageFrame } from "../../ui/page";
import { Conflicts } from "../timeline/conflicts";
import { useActs } from "./acts/use-acts";
import { useUpload } from "./acts/use-upload";
import { useParting } from "./drafts";
import css from "./files.module.css";
import { Grip, useTreeWidth } from "./grip";
import { Viewer } from "./open/viewer";
import { plain } from "./paths";
import { TreePane } from "./tree/pane";
import { tree } from "./tree/store";

export default function Files({ rest, query }: { rest: string; query: URLSearchParams }) {
  const path = plain(rest) ?? "";
  const { acts, dialogs } = useActs();
  const { askFiles, askFolder, inputs } = useUpload();
  const [folder, setFolder] = useState("");
  const [width, setWidth] = useTreeWidth();
  useParting();
  useCommands(
    useMemo(
      (): Command[] => [
        { id: "files-new", name: "New file", icon: "plus", also: "create", act: () => acts.newFile(folder) },
        { id: "files-folder", name: "New folder", icon: "files", also: "create directory", act: () => acts.newFolder(folder) },
        { id: "files-upload", name: "Upload files", icon: "upload", act: () => askFiles(folder) },
        { id: "files-all", name: "Download all files", icon: "download", also: "tar archive workspace", act: () => acts.download("", true) },
        { id: "files-close", name: "Close all folders of the tree", icon: "chevron", also: "collapse", act: () => tree.closeAll() },
      ],
      [acts, askFiles, folder],
    ),
  );
  return (
    <PageFrame
      flush
      title="Files"
      acts={
        <>
          <IconButton label="New file" icon="plus" onClick={() => acts.newFile(folder)} />
          <IconButton label="Upload files" icon="upload" onClick={() => askFiles(folder)} />
          <Menu
            label="More to do with files"
            small={false}
            items={[
              { label: "New folder", icon: "files", act: () => acts.newFolder(folder) },
              { label: "Upload a folder", icon: "upload", act: () => askFolder(folder) },
              { label: "Download all files", icon: "download", act: () => acts.download("", true) },
              { label: "Close all folders", icon: "chevron", act: () => tree.closeAll() },
              { label: "List again", icon: "refresh", act: () => tree.refresh() },
            ]}
          />
        </>
      }
    >
      <div className={css.frame}>
        <div className={css.page} style={{ "--tree": `${width}px` } as React.CSSProperties}>
          <aside className={classes(css.tree, path !== "" && css.away)} aria-label="Tree of files">
            <TreePane open={path} acts={acts} onFolder={setFolder} onUpload={askFiles} />
            <Grip width={width} onWidth={setWidth} />
          </aside>
          <section className={classes(css.open, path === "" && css.away)} aria-label="What is open">
            <Viewer key={path} path={path} query={query} acts={acts} onUpload={askFiles} onUploadFolder={askFolder} onBack={() => go(to("files"))} />
          </section>
        </div>
      </div>
      {dialogs}
      {inputs}
      <Conflicts />
    </PageFrame>
  );
}
