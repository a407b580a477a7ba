// Ctrl Z and Ctrl Shift Z for files, where nobody types, and what came of the processes afterwards.

import { useCallback, useEffect } from "react";
import { useEvent, type Message } from "../../api/events";
import { say } from "../../ui/overlay";
import { redoLast, undoLast } from "./take-back";

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest(".cm-editor, .xterm, dialog") !== null);

export function useUndoKeys(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || isTyping(event.target)) return;
      const key = event.key.toLowerCase();
      const redo = (key === "z" && event.shiftKey) || (key === "y" && !event.shiftKey);
      if (!redo && key !== "z") return;
      event.preventDefault();
      void (redo ? redoLast() : undoLast());
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  useEvent("restored", useCallback(tell, []));
}

/** Of what the files that were put back made start again. */
function tell({ processes }: Message<"restored">): void {
  if (processes.length === 0) return;
  const names = (some: typeof processes) => some.map(({ name }) => (name === "runtime" ? "the app" : name)).join(", ");
  const sentence = (words: string) => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
  const down = processes.filter(({ ready }) => !ready);
  if (down.length === 0) say(sentence(`${names(processes)} ${processes.length === 1 ? "is" : "are"} ready again`));
  else say(sentence(`${names(down)}: not ready${down[0]!.reason ? `, ${down[0]!.reason}` : ""}`), undefined, "bad");
}
