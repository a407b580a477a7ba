// Files that go with a message: put where the conversation finds them as soon as they are chosen.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { inWords } from "../../api/client";
import { role as ofPage } from "../../api/mount";
import { say } from "../../ui/overlay";
import type { Role } from "./calls";
import { upload } from "./place";

export interface Attachment {
  key: number;
  name: string;
  size: number;
  /** Where it is, once it is there. */
  path: string | null;
  role: Role;
  problem: string | null;
}

export interface Attachments {
  files: readonly Attachment[];
  /** Some are still on their way. */
  busy: boolean;
  add: (files: Iterable<File>) => void;
  drop: (key: number) => void;
  clear: () => void;
}

let next = 1;

export function useAttachments(role: Role): Attachments {
  const [files, setFiles] = useState<readonly Attachment[]>([]);
  const leaving = useRef(new Map<number, AbortController>());
  useEffect(() => () => leaving.current.forEach((controller) => controller.abort()), []);
  const add = useCallback(
    (chosen: Iterable<File>) => {
      for (const file of chosen) {
        const key = next++;
        const controller = new AbortController();
        leaving.current.set(key, controller);
        setFiles((all) => [...all, { key, name: file.name, size: file.size, path: null, role, problem: null }]);
        const settle = (change: Partial<Attachment>) => {
          leaving.current.delete(key);
          setFiles((all) => all.map((one) => (one.key === key ? { ...one, ...change } : one)));
        };
        upload(role, file, controller.signal).then(
          (path) => {
            settle({ path });
            if (role !== ofPage) say(`${file.name} went to ${role}, where this conversation acts; this page is of ${ofPage}`);
          },
          (error: unknown) => settle({ problem: inWords(error) }),
        );
      }
    },
    [role],
  );
  const drop = useCallback((key: number) => {
    leaving.current.get(key)?.abort();
    setFiles((all) => all.filter((one) => one.key !== key));
  }, []);
  const clear = useCallback(() => setFiles([]), []);
  return useMemo(() => ({ files, busy: files.some(({ path, problem }) => path === null && problem === null), add, drop, clear }), [files, add, drop, clear]);
}

/** Files of a paste or a drop. Pictures from the clipboard are all called the same. */
export function filesOf(data: DataTransfer | null): File[] {
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
  return [...(data?.files ?? [])].map((file) => (file.name === "image.png" ? new File([file], `pasted-${stamp}.png`, { type: file.type }) : file));
}
