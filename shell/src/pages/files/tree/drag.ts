// Dragging: within the tree to move, from outside to upload.

import { useRef, useState } from "react";
import { isWithin, parentOf } from "../paths";
import { tree } from "./store";
import { entryAt, isFolder } from "./model";

const PATH = "application/x-nacre-path";
/** Held over a closed folder for so long, it opens. */
const HOVER = 700;

interface Drop {
  onMove: (path: string, folder: string) => void;
  onFiles: (transfer: DataTransfer, folder: string) => void;
}

/** The folder that a place in the tree stands for. */
function folderAt(target: EventTarget): string {
  const path = (target as HTMLElement).closest<HTMLElement>("[data-path]")?.dataset.path;
  if (path === undefined) return "";
  const entry = entryAt(tree.get().model, path);
  return entry && isFolder(entry) && !entry.odd ? path : parentOf(path);
}

export function useDrag({ onMove, onFiles }: Drop) {
  const [target, setTarget] = useState<string | null>(null);
  const dragged = useRef<string | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const aim = (folder: string | null) => {
    if (folder === target) return;
    clearTimeout(timer.current);
    setTarget(folder);
    if (folder) timer.current = setTimeout(() => tree.open(folder), HOVER);
  };
  const end = () => (aim(null), (dragged.current = null));

  /** What may be dropped into a folder; null when nothing may. */
  const fits = (event: React.DragEvent, folder: string): "move" | "copy" | null => {
    if (event.dataTransfer.types.includes("Files")) return "copy";
    const path = dragged.current;
    return path !== null && parentOf(path) !== folder && !isWithin(folder, path) ? "move" : null;
  };

  return {
    target,
    handlers: {
      onDragStart: (event: React.DragEvent) => {
        const path = (event.target as HTMLElement).dataset?.path;
        if (path === undefined) return;
        dragged.current = path;
        event.dataTransfer.setData(PATH, path);
        // Dropped into a text, it is a path.
        event.dataTransfer.setData("text/plain", path);
        event.dataTransfer.effectAllowed = "copyMove";
      },
      onDragOver: (event: React.DragEvent) => {
        const folder = folderAt(event.target);
        const effect = fits(event, folder);
        aim(effect ? folder : null);
        if (!effect) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = effect;
      },
      onDragLeave: (event: React.DragEvent) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) aim(null);
      },
      onDragEnd: end,
      onDrop: (event: React.DragEvent) => {
        const folder = folderAt(event.target);
        const effect = fits(event, folder);
        const path = dragged.current;
        end();
        if (!effect) return;
        event.preventDefault();
        if (effect === "copy") onFiles(event.dataTransfer, folder);
        else if (path !== null) onMove(path, folder);
      },
    },
  };
}
