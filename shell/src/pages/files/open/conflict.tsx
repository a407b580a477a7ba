// The file was changed while it was being edited: both sides, and which shall be.

import { Suspense, useRef } from "react";
import { onDemand } from "../../../app/on-demand";
import { go, to } from "../../../app/router";
import { Button, Skeleton } from "../../../ui/basics";
import { Icon } from "../../../ui/icons";
import { Dialog } from "../../../ui/overlay";
import { setDraft } from "../drafts";
import { useMarks } from "../marks.live";
import { nameOf, parentOf } from "../paths";
import css from "./conflict.module.css";
import type { Version } from "./document";
import type { useDocument } from "./use-document";

const Merge = onDemand(() => import("./merge"));

type OpenDocument = ReturnType<typeof useDocument>;

export function TroubleBar({ path, opened }: { path: string; opened: OpenDocument }) {
  const mark = useMarks().files.get(path);
  const { document, saving, setLooking, keepMine, takeTheirs } = opened;
  if (!document.trouble) return null;
  const gone = document.trouble.kind === "gone";
  const by = mark?.who && mark.who.kind !== "you" ? `by ${mark.who.words}` : "elsewhere";
  return (
    <div className={css.bar} role="alert">
      <Icon name="warning" size={18} />
      <span className="grow">
        {gone ? `${nameOf(path)} is not there any more.` : `${nameOf(path)} was changed ${by} while you were editing it.`}
      </span>
      <span className={css.acts}>
        {!gone && (
          <Button small onClick={() => setLooking(true)}>
            Look at both
          </Button>
        )}
        <Button small busy={saving} onClick={() => void keepMine()}>
          {gone ? "Save it again" : "Keep mine"}
        </Button>
        <Button small onClick={gone ? () => (setDraft(path, null), go(to("files", parentOf(path)), "replace")) : takeTheirs}>
          {gone ? "Let it go" : "Take theirs"}
        </Button>
      </span>
    </div>
  );
}

export function Conflict({ path, opened, disk }: { path: string; opened: OpenDocument; disk: Version }) {
  const { handle, setLooking, keepMine, takeTheirs, saving } = opened;
  const mine = useRef(handle.current?.text() ?? "");
  return (
    <Dialog
      wide
      open
      title={`Two versions of ${nameOf(path)}`}
      onClose={() => setLooking(false)}
      acts={
        <>
          <Button onClick={() => setLooking(false)}>Decide later</Button>
          <Button onClick={takeTheirs}>Take theirs</Button>
          <Button look="primary" busy={saving} onClick={() => void keepMine(mine.current)}>
            Keep mine
          </Button>
        </>
      }
    >
      <p className="soft small">It was changed after you had opened it. You can take over parts of theirs into yours before you keep it. Whichever is replaced stays in the history.</p>
      <Suspense fallback={<Skeleton height={320} />}>
        <Merge key={disk.etag} path={path} theirs={disk.text} mine={mine.current} onMine={(text) => (mine.current = text)} />
      </Suspense>
    </Dialog>
  );
}
