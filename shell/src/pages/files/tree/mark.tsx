// The mark of something that changed a moment ago.

import { exactly } from "../../../ui/format";
import { Icon } from "../../../ui/icons";
import { WHO_ICONS, type Deed } from "../../timeline/words";
import type { Mark } from "../marks";
import css from "./tree.module.css";

const WORDS: Record<Deed, string> = { added: "New", changed: "Changed", moved: "Moved", removed: "Removed" };

export function age(at: number, now: number): string {
  const minutes = Math.floor((now - at) / 60_000);
  return minutes < 1 ? "now" : `${minutes} min`;
}

function inWords({ deed, who, at }: Mark, now: number): string {
  const when = now - at < 60_000 ? "just now" : `${age(at, now)} ago`;
  return `${WORDS[deed]}${who ? ` by ${who.words}` : ""}, ${when}`;
}

/** What came just now comes with a movement; what is scrolled into view does not. */
const FRESH = 3000;

/** Who and when, beside the name. */
export function FileMark({ mark, now }: { mark: Mark; now: number }) {
  return (
    <span className={css.mark} data-who={mark.who?.kind ?? "nobody"} data-fresh={Date.now() - mark.at < FRESH || undefined} title={`${inWords(mark, now)} (${exactly(mark.at)})`}>
      <span aria-hidden="true" className={css.age}>
        {mark.deed === "added" && now - mark.at < 60_000 ? "new" : age(mark.at, now)}
      </span>
      <Icon name={mark.who ? WHO_ICONS[mark.who.kind] : "dot"} size={13} />
      <span className="unseen">, {inWords(mark, now)}</span>
    </span>
  );
}

/** A closed folder with something in it that changed. */
export function FolderMark({ mark, now }: { mark: Mark; now: number }) {
  return (
    <span className={css.spot} data-who={mark.who?.kind ?? "nobody"} title={`Something in it: ${inWords(mark, now)}`}>
      <span className="unseen">, something in it changed</span>
    </span>
  );
}
