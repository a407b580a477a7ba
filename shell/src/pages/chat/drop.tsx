// Files that are dropped anywhere on the conversation go with the next message.

import { useRef, useState, type DragEvent, type ReactNode } from "react";
import { Icon } from "../../ui/icons";
import { filesOf } from "./attachments";
import css from "./talk.module.css";

export function DropZone({ onFiles, children, ...rest }: { onFiles: (files: File[]) => void; children: ReactNode; onKeyDown?: (event: React.KeyboardEvent) => void }) {
  const [over, setOver] = useState(false);
  // Entering a child comes before leaving its parent.
  const depth = useRef(0);
  const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes("Files");
  const enter = (event: DragEvent, by: number) => {
    if (!hasFiles(event)) return;
    depth.current += by;
    setOver(depth.current > 0);
  };
  return (
    <div
      {...rest}
      className={css.talk}
      onDragEnter={(event) => enter(event, 1)}
      onDragLeave={(event) => enter(event, -1)}
      onDragOver={(event) => hasFiles(event) && event.preventDefault()}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        depth.current = 0;
        setOver(false);
        onFiles(filesOf(event.dataTransfer));
      }}
    >
      {children}
      {over && (
        <div className={css.drop}>
          <Icon name="attach" size={22} />
          Drop to attach
        </div>
      )}
    </div>
  );
}
