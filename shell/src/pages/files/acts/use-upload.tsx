// The browser's own dialogs for files and folders to upload.

import { useCallback, useRef, type ReactNode } from "react";
import { chosen } from "./collect";
import { upload } from "./uploads";

export function useUpload(): { askFiles: (folder: string) => void; askFolder: (folder: string) => void; inputs: ReactNode } {
  const files = useRef<HTMLInputElement>(null);
  const folders = useRef<HTMLInputElement>(null);
  const into = useRef("");
  const take = (event: React.ChangeEvent<HTMLInputElement>) => {
    const incoming = event.target.files ? chosen(event.target.files) : [];
    // The same files may be chosen again.
    event.target.value = "";
    if (incoming.length > 0) void upload(into.current, incoming);
  };
  const ask = (input: React.RefObject<HTMLInputElement | null>) => (folder: string) => {
    into.current = folder;
    input.current?.click();
  };
  return {
    askFiles: useCallback((folder: string) => ask(files)(folder), []),
    askFolder: useCallback((folder: string) => ask(folders)(folder), []),
    inputs: (
      <>
        <input ref={files} type="file" multiple hidden aria-label="Files to upload" onChange={take} />
        <input
          ref={(element) => {
            folders.current = element;
            element?.setAttribute("webkitdirectory", "");
          }}
          type="file"
          multiple
          hidden
          aria-label="A folder to upload"
          onChange={take}
        />
      </>
    ),
  };
}
