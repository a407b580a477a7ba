// What is said where there is nothing to edit.

import { to } from "../../../app/router";
import { Button, Empty, LinkButton } from "../../../ui/basics";
import { size } from "../../../ui/format";
import { Icon } from "../../../ui/icons";
import { sayError } from "../../../ui/overlay";
import { Time } from "../../../ui/time";
import { WHO_ICONS } from "../../timeline/words";
import type { Acts } from "../acts/use-acts";
import { write, type Stat } from "../calls";
import css from "../files.module.css";
import { setDraft, useDrafts } from "../drafts";
import { useMarks } from "../marks.live";
import { nameOf } from "../paths";
import { FileBar } from "./bar";

export function Missing({ path }: { path: string }) {
  const draft = useDrafts().get(path);
  return (
    <Empty
      icon="file"
      title={`There is no ${nameOf(path)}`}
      action={
        <div className={css.acts}>
          {draft ? (
            <>
              <Button look="primary" onClick={() => void write(path, draft.text, "new").then(() => setDraft(path, null)).catch(sayError)}>
                Save what you had not saved
              </Button>
              <Button onClick={() => setDraft(path, null)}>Let it go</Button>
            </>
          ) : (
            <Button icon="plus" onClick={() => void write(path, "", "new").catch(sayError)}>
              Create it
            </Button>
          )}
          <LinkButton icon="timeline" href={to("timeline", "", { path })}>
            Its history
          </LinkButton>
        </div>
      }
    >
      {path} is not there, or not any more. If it was deleted, its history brings it back.
    </Empty>
  );
}

export function NotShown({ path, stat, acts, onBack, why, download = true }: { path: string; stat: Stat; acts: Acts; onBack: () => void; why: string; download?: boolean }) {
  return (
    <>
      <FileBar path={path} onBack={onBack} acts={acts} />
      <Empty
        icon="file"
        title={nameOf(path)}
        action={
          download && (
            <Button icon="download" look="primary" onClick={() => acts.download(path, false)}>
              Download {size(stat.size)}
            </Button>
          )
        }
      >
        {why} It was last changed <Time at={stat.modified_ns / 1e6} />.
      </Empty>
    </>
  );
}

const SHOWN = 10;

/** When nothing is open: what changed a moment ago. */
export function Lately() {
  const { files } = useMarks();
  const newest = [...files].filter(([, { deed, folder }]) => deed !== "removed" && !folder).sort(([, a], [, b]) => b.at - a.at).slice(0, SHOWN);
  if (newest.length === 0) {
    return (
      <Empty icon="file" title="Choose a file">
        It opens here, to be read and changed. Whatever changes on your computer is marked in the tree, with who did it.
      </Empty>
    );
  }
  return (
    <div className={css.body}>
      <div className={css.lately}>
        <h2>Changed a moment ago</h2>
        <ul>
          {newest.map(([path, { at, who }]) => (
            <li key={path}>
              <a href={to("files", path)}>
                <Icon name={who ? WHO_ICONS[who.kind] : "dot"} size={16} />
                <span className="grow cut-off">{path}</span>
                <span className="soft small cut-off">
                  {who && `${who.words}, `}
                  <Time at={at} />
                </span>
              </a>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
