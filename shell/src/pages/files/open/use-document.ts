// Opens a text, keeps it with what happens to its file, and saves it over exactly the version it was read
// with.

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { Refusal } from "../../../api/client";
import { sayError } from "../../../ui/overlay";
import { read, write, type Expected } from "../calls";
import { draftOf, editing, isEditing, setDraft } from "../drafts";
import { met, opened, written, type Document, type Version } from "./document";

/** What the editor lets others do. */
export interface EditorHandle {
  text: () => string;
  /** Undoable, and with the cursor where it was. */
  replace: (text: string) => void;
  focus: () => void;
  find: () => void;
}

const PAUSE = 500;

/** `disk` is the file as it was last seen, or "gone". */
export function useDocument(path: string, disk: Version | "gone") {
  const client = useQueryClient();
  const handle = useRef<EditorHandle | null>(null);
  const [first] = useState(() => opened(disk === "gone" ? { text: "", etag: "" } : disk, draftOf(path)));
  const [initial, setInitial] = useState(first.text);
  const [document, setDocument] = useState<Document>(first.document);
  const [saving, setSaving] = useState(false);
  /** A save was refused because of a change elsewhere, so both sides are shown. */
  const [looking, setLooking] = useState(false);
  const latest = useRef(document);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const become = useCallback((next: Document) => {
    latest.current = next;
    setDocument(next);
    if (!next.trouble) setLooking(false);
  }, []);
  const text = useCallback(() => handle.current?.text() ?? first.text, [first]);
  const keep = useCallback(() => {
    clearTimeout(timer.current);
    if (!isEditing(path, keep)) return;
    const { base, dirty } = latest.current;
    setDraft(path, dirty ? { text: text(), etag: base.etag } : null);
  }, [path, text]);
  useEffect(() => {
    const end = editing(path, keep);
    return () => {
      keep();
      end();
    };
  }, [path, keep]);

  useEffect(() => {
    if (disk === "gone") {
      if (latest.current.dirty) become({ ...latest.current, trouble: { kind: "gone" } });
      return;
    }
    const { document: next, reload } = met(latest.current, text(), disk);
    become(next);
    if (reload && handle.current) handle.current.replace(disk.text);
    else if (reload) setInitial(disk.text);
    keep();
  }, [disk, become, text, keep]);

  /** Told by the editor at each change. */
  const edited = useCallback(
    (dirty: boolean) => {
      if (dirty !== latest.current.dirty) {
        become({ ...latest.current, dirty });
        keep();
      } else {
        clearTimeout(timer.current);
        timer.current = setTimeout(keep, PAUSE);
      }
    },
    [become, keep],
  );

  const put = useCallback(
    async (content: string, expected: Expected) => {
      setSaving(true);
      try {
        const { etag } = await write(path, content, expected);
        become(written({ text: content, etag }, text()));
        client.setQueryData(["files", "text", path], { kind: "text", text: content, etag });
        void client.invalidateQueries({ queryKey: ["files", "stat", path] });
        keep();
      } catch (error) {
        if (!(error instanceof Refusal && error.status === 412)) return sayError(error);
        await client.refetchQueries({ queryKey: ["files", "text", path] });
        const there = await read(path).catch(() => null);
        const trouble = there?.kind === "text" ? ({ kind: "changed", disk: there } as const) : ({ kind: "gone" } as const);
        become({ ...latest.current, trouble });
        setLooking(trouble.kind === "changed");
      } finally {
        setSaving(false);
      }
    },
    [path, client, become, text, keep],
  );

  const save = useCallback(() => put(text(), { etag: latest.current.base.etag }), [put, text]);
  /** Over what is there now, and only over that. */
  const keepMine = useCallback(
    (mine?: string) => {
      const { trouble } = latest.current;
      const content = mine ?? text();
      if (mine !== undefined) handle.current?.replace(mine);
      setLooking(false);
      return put(content, trouble?.kind === "changed" ? { etag: trouble.disk.etag } : "new");
    },
    [put, text],
  );
  const takeTheirs = useCallback(() => {
    const { trouble } = latest.current;
    if (trouble?.kind !== "changed") return;
    become({ base: trouble.disk, dirty: false, trouble: null });
    handle.current?.replace(trouble.disk.text);
    keep();
  }, [become, keep]);

  const ready = useCallback((made: EditorHandle) => void (handle.current = made), []);
  return { document, initial, saving, looking, setLooking, edited, ready, handle, save, keepMine, takeTheirs };
}
