// A folder that was opened by its address.

import { useEffect } from "react";
import { Button, Empty } from "../../../ui/basics";
import { count } from "../../../ui/format";
import { DropZone } from "../acts/drop-zone";
import css from "../files.module.css";
import { nameOf } from "../paths";
import { isFolder } from "../tree/model";
import { tree, useTree } from "../tree/store";
import { FileBar } from "./bar";
import type { ViewerProps } from "./viewer";

export function FolderView({ path, acts, onBack, onUpload, onUploadFolder }: ViewerProps) {
  const folder = useTree().model.get(path);
  useEffect(() => tree.open(path), [path]);
  const folders = folder?.entries.filter(isFolder).length ?? 0;
  const files = (folder?.entries.length ?? 0) - folders;
  return (
    <>
      <FileBar path={path} onBack={onBack} acts={acts} folder />
      <DropZone folder={path}>
        <Empty
          icon="files"
          title={nameOf(path)}
          action={
            <div className={css.acts}>
              <Button icon="plus" onClick={() => acts.newFile(path)}>
                New file
              </Button>
              <Button icon="files" onClick={() => acts.newFolder(path)}>
                New folder
              </Button>
              <Button icon="upload" onClick={() => onUpload(path)}>
                Upload files
              </Button>
              <Button icon="upload" onClick={() => onUploadFolder(path)}>
                Upload a folder
              </Button>
              <Button icon="download" onClick={() => acts.download(path, true)}>
                Download
              </Button>
            </div>
          }
        >
          {folder ? `${count(folders, "folder")} and ${count(files, "file")}${folder.next === null ? "" : ", and more"}.` : "Looking into it."} Drop files here to upload them.
        </Empty>
      </DropZone>
    </>
  );
}
