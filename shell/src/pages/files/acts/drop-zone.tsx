// A place that files can be dropped on.

import { useState, type ReactNode } from "react";
import { classes } from "../../../ui/basics";
import { dropped } from "./collect";
import css from "./drop-zone.module.css";
import { upload } from "./uploads";

export function DropZone({ folder, children, className }: { folder: string; children: ReactNode; className?: string | undefined }) {
  const [over, setOver] = useState(false);
  return (
    <div
      className={classes(css.zone, over && css.over, className)}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = "copy";
        setOver(true);
      }}
      onDragLeave={(event) => event.currentTarget.contains(event.relatedTarget as Node | null) || setOver(false)}
      onDrop={(event) => {
        setOver(false);
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        void dropped(event.dataTransfer).then((incoming) => upload(folder, incoming));
      }}
    >
      {children}
    </div>
  );
}
