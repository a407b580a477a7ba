// What was typed and not sent stays with its conversation until the browser is closed.

import { useCallback, useState } from "react";

const key = (id: string) => `nacre.draft.${id}`;

export function readDraft(id: string): string {
  try {
    return sessionStorage.getItem(key(id)) ?? "";
  } catch {
    return "";
  }
}

export function writeDraft(id: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(key(id), text);
    else sessionStorage.removeItem(key(id));
  } catch {
    // A browser that keeps nothing: it holds until the page is closed.
  }
}

export function useDraft(id: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => readDraft(id));
  const change = useCallback(
    (next: string) => {
      writeDraft(id, next);
      setText(next);
    },
    [id],
  );
  return [text, change];
}
