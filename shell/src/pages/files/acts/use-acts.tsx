// What can be done to files, with the questions it takes.

import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState, type ReactNode } from "react";
import { Refusal } from "../../../api/client";
import { go, read as readPlace, to } from "../../../app/router";
import { Confirm, sayError } from "../../../ui/overlay";
import { archiveAddress, copy, downloadAddress, exists, makeFolder, move, removeAll, write } from "../calls";
import { setDraft } from "../drafts";
import { isWithin, join, nameOf, parentOf } from "../paths";
import { tree } from "../tree/store";
import { PathDialog, type PathQuestion } from "./path-dialog";
import { isRecorded, sayUndoable } from "./undoable";

export interface Acts {
  newFile: (folder: string) => void;
  newFolder: (folder: string) => void;
  rename: (path: string) => void;
  copy: (path: string) => void;
  remove: (path: string) => void;
  /** Into a folder, under its own name. */
  moveInto: (path: string, folder: string) => void;
  download: (path: string, folder: boolean) => void;
}

/** Runs it, and again with the folder made when that was missing. */
async function withFolder<T>(path: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const missing = error instanceof Refusal && error.status === 404 && parentOf(path) !== "" && !(await exists(parentOf(path)));
    if (!missing) throw error;
    await makeFolder(parentOf(path), true);
    return run();
  }
}

const place = (path: string) => parentOf(path) || "the workspace";

async function moveTo(from: string, into: string, replace = false): Promise<void> {
  if (from === into) return;
  await withFolder(into, () => move(from, into, replace));
  const words = parentOf(from) === parentOf(into) ? `${nameOf(from)} is now ${nameOf(into)}.` : `${nameOf(into)} is now in ${place(into)}.`;
  void sayUndoable(words, "move", into);
}

/** `notes copy.txt`, `notes copy 2.txt` */
async function freeCopy(path: string): Promise<string> {
  const [, stem = "", ending = ""] = /^(.+?)(\.[^.]*)?$/.exec(nameOf(path)) ?? [];
  for (let number = 1; ; number++) {
    const name = join(parentOf(path), `${stem} copy${number > 1 ? ` ${number}` : ""}${ending}`);
    if (!(await exists(name))) return name;
  }
}

function fetchFile(address: string, name: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

export function useActs(): { acts: Acts; dialogs: ReactNode } {
  const client = useQueryClient();
  const [question, setQuestion] = useState<PathQuestion | null>(null);
  const [doomed, setDoomed] = useState<string | null>(null);
  const acts = useMemo((): Acts => {
    const show = (path: string) => (void tree.reveal(path), go(to("files", path)));
    return {
      newFile: (folder) =>
        setQuestion({
          title: "New file",
          label: "Name",
          initial: folder ? `${folder}/` : "",
          act: "Create",
          submit: async (path) => (await write(path, "", "new"), show(path)),
        }),
      newFolder: (folder) =>
        setQuestion({
          title: "New folder",
          label: "Name",
          initial: folder ? `${folder}/` : "",
          act: "Create",
          submit: async (path) => (await withFolder(path, () => makeFolder(path)), show(path)),
        }),
      rename: (path) => setQuestion({ title: "Rename or move", label: "New path", initial: path, act: "Move", replaces: true, submit: (into, replace) => moveTo(path, into, replace) }),
      copy: (path) =>
        void freeCopy(path)
          .then((initial) =>
            setQuestion({
              title: `Copy ${nameOf(path)}`,
              label: "Path of the copy",
              initial,
              act: "Copy",
              submit: async (into) => {
                await withFolder(into, () => copy(path, into));
                void sayUndoable(`${nameOf(into)} is a copy.`, "copy", into);
              },
            }),
          )
          .catch(sayError),
      // What is recorded can be taken back, so there is nothing to ask.
      remove: (path) => void isRecorded(client).then((recorded) => (recorded ? removeNow(path) : setDoomed(path))),
      moveInto: (path, folder) => void moveTo(path, join(folder, nameOf(path))).catch(sayError),
      download: (path, folder) => (folder ? fetchFile(archiveAddress(path), `${nameOf(path) || "workspace"}.tar`) : fetchFile(downloadAddress(path), nameOf(path))),
    };
  }, [client]);
  const dialogs = (
    <>
      {question && <PathDialog key={question.title + question.initial} question={question} onClose={() => setQuestion(null)} />}
      <Confirm
        open={doomed !== null}
        danger
        title={`Delete ${nameOf(doomed ?? "")}?`}
        words="Changes are not being recorded at the moment, so this cannot be undone."
        act={{ label: "Delete", run: () => doomed !== null && void removeNow(doomed) }}
        onClose={() => setDoomed(null)}
      />
    </>
  );
  return { acts, dialogs };
}

async function removeNow(path: string): Promise<void> {
  try {
    await removeAll(path);
    setDraft(path, null);
    // Whoever looks at it, looks at the folder it was in.
    const { page, rest } = readPlace(location.hash);
    if (page === "files" && isWithin(rest, path)) go(to("files", parentOf(path)), "replace");
    await sayUndoable(`${nameOf(path)} is deleted.`, "remove", path);
  } catch (error) {
    sayError(error);
  }
}
