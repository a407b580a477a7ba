// Every moment that was recorded, and the way back to each.

import { useMemo, useState } from "react";
import { useCommands, type Command } from "../../app/commands";
import { Button, classes, Empty } from "../../ui/basics";
import { PageFrame } from "../../ui/page";
import { Compare } from "./compare";
import { Conflicts } from "./conflicts";
import { Detail } from "./detail";
import { byDay, isBy } from "./feed";
import { Filters } from "./filters";
import { useUndoKeys } from "./keys";
import { FeedList } from "./list";
import { show, shownAt } from "./place";
import { HistoryNotice } from "./state";
import { redoLast, undoLast, useTakingBack } from "./take-back";
import css from "./timeline.module.css";
import { useFeed } from "./use-feed";

const COMMANDS: readonly Command[] = [
  { id: "timeline-undo", name: "Undo the last change", icon: "undo", keys: "Ctrl Z", act: () => void undoLast() },
  { id: "timeline-redo", name: "Redo what was undone last", icon: "redo", keys: "Ctrl Shift Z", act: () => void redoLast() },
];

export default function Timeline({ rest, query }: { rest: string; query: URLSearchParams }) {
  const shown = useMemo(() => shownAt(rest, query), [rest, query]);
  const feed = useFeed({ path: shown.path, conversation: shown.conversation, labelled: shown.named });
  const { working } = useTakingBack();
  // Whether the next moment that is chosen in the list is the one to compare with.
  const [picking, setPicking] = useState(false);
  useCommands(COMMANDS);
  useUndoKeys();
  const fitting = useMemo(() => feed.checkpoints.filter((checkpoint) => isBy(checkpoint, shown.who)), [feed.checkpoints, shown.who]);
  const rows = useMemo(() => byDay(fitting, Date.now()), [fitting]);
  const choose = (id: number) => {
    if (picking && id !== shown.id) show(shown, { compare: id });
    else show(shown, { id, compare: null });
    setPicking(false);
  };
  const detailed = shown.id !== null && !picking;
  return (
    <PageFrame
      flush
      title="Timeline"
      acts={
        <>
          <Button icon="undo" busy={working === "undo"} disabled={working !== null} title="Undo the last change (Ctrl Z)" onClick={() => void undoLast()}>
            Undo
          </Button>
          <Button icon="redo" busy={working === "redo"} disabled={working !== null} title="Redo (Ctrl Shift Z)" onClick={() => void redoLast()}>
            Redo
          </Button>
        </>
      }
    >
      <div className={css.frame}>
        <div className={css.page}>
          <section className={classes(css.list, detailed && css.away)} aria-label="Moments">
            <HistoryNotice />
            <Filters shown={shown} />
            <FeedList feed={feed} rows={rows} shown={shown} picking={picking} onChoose={choose} onCancel={() => setPicking(false)} />
          </section>
          <section className={classes(css.detail, !detailed && css.away)} aria-label="The moment that is open">
            {shown.id === null ? (
              <Empty icon="timeline" title="Choose a moment">
                You see what changed then, and can undo it, or go back to how everything was.
              </Empty>
            ) : shown.compare !== null ? (
              <Compare key={`${shown.id}-${shown.compare}`} shown={shown} other={shown.compare} />
            ) : (
              <Detail key={shown.id} id={shown.id} known={feed.checkpoints.find(({ id }) => id === shown.id)} shown={shown} onCompare={() => setPicking(true)} />
            )}
          </section>
        </div>
      </div>
      <Conflicts />
    </PageFrame>
  );
}
