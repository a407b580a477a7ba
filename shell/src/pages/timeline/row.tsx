// One moment in the list: who, what, when.

import { memo } from "react";
import { Badge, classes } from "../../ui/basics";
import { count } from "../../ui/format";
import { Icon } from "../../ui/icons";
import { Time } from "../../ui/time";
import { shown } from "../files/paths";
import css from "./list.module.css";
import { useChanges } from "./use-feed";
import { filesIn, titleOf, whoOf, WHO_ICONS, type Checkpoint } from "./words";

interface Props {
  checkpoint: Checkpoint;
  last: boolean;
  titles: ReadonlyMap<string, string>;
  href: string;
  state: "open" | "compared" | "closed";
  /** The list does not move, so it is worth asking for more about what is in it. */
  still: boolean;
  /** In place of opening it. */
  onChoose?: ((id: number) => void) | undefined;
}

const FIRST = 3;

export const Moment = memo(function Moment({ checkpoint, last, titles, href, state, still, onChoose }: Props) {
  const who = whoOf(checkpoint);
  const { data } = useChanges(checkpoint.id, FIRST, still && who.kind !== "first");
  const names = data?.changes.map(({ path }) => shown(path)) ?? [];
  const title = titleOf(checkpoint, names[0], titles);
  return (
    <a
      href={href}
      className={classes(css.moment, checkpoint.undone && css.undone)}
      data-state={state}
      aria-current={state === "open" ? "true" : undefined}
      onClick={(event) => {
        if (!onChoose) return;
        event.preventDefault();
        onChoose(checkpoint.id);
      }}
    >
      <span className={classes(css.thread, last && css.end)} data-who={who.kind}>
        <span className={css.bead}>
          <Icon name={WHO_ICONS[who.kind]} size={15} />
        </span>
        <span className="unseen">By {who.words}: </span>
      </span>
      <span className={css.words}>
        <span className={css.line}>
          <span className={classes(css.title, "cut-off grow", title.startsWith("$ ") && css.command)}>{checkpoint.label || title}</span>
          <span className={css.when}>
            <Time at={checkpoint.time} />
          </span>
        </span>
        <span className={css.line}>
          <span className="grow cut-off soft">
            {checkpoint.label && `${title} · `}
            {names.length > 0 ? names.join(", ") : who.kind === "first" ? "The first look at your files" : count(filesIn(checkpoint), "file")}
          </span>
          {checkpoint.label && <Badge tone="accent">named</Badge>}
          {checkpoint.undone && <Badge>undone</Badge>}
          <Counts checkpoint={checkpoint} />
        </span>
      </span>
    </a>
  );
});

/** `+3 ~1 −2`, and in words for who hears it. */
export function Counts({ checkpoint: { added, changed, removed } }: { checkpoint: Pick<Checkpoint, "added" | "changed" | "removed"> }) {
  const parts = [[added, "+", "added"], [changed, "~", "changed"], [removed, "−", "removed"]] as const;
  const there = parts.filter(([number]) => number > 0);
  return (
    <span className={css.counts}>
      <span aria-hidden="true">
        {there.map(([number, sign, word]) => (
          <span key={word} data-deed={word}>
            {sign}
            {number.toLocaleString("en")}
          </span>
        ))}
      </span>
      <span className="unseen">{there.map(([number, , word]) => `${number} ${word}`).join(", ")}</span>
    </span>
  );
}
