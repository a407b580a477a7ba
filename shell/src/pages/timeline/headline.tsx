// Who was at work, and what they remarked.

import { to } from "../../app/router";
import { Badge } from "../../ui/basics";
import { count } from "../../ui/format";
import { Icon, type IconName } from "../../ui/icons";
import { Time } from "../../ui/time";
import { shown } from "../files/paths";
import css from "./detail.module.css";
import { Counts } from "./row";
import { useTitles } from "./use-feed";
import { filesIn, titleOf, whoOf, WHO_ICONS, type Author, type Checkpoint } from "./words";

/** Whoever had it done comes before how it was done. */
const ORDER: readonly Author["kind"][] = ["conversation", "ssh", "command", "api"];

export function Headline({ checkpoint, first }: { checkpoint: Checkpoint; first?: string | undefined }) {
  const titles = useTitles();
  const title = titleOf(checkpoint, first, titles);
  const { cause, authors, remarks = [] } = checkpoint;
  return (
    <div className={css.headline}>
      <div className="row">
        <Icon name={WHO_ICONS[whoOf(checkpoint).kind]} size={20} />
        <h2 className={css.title}>{checkpoint.label || title}</h2>
      </div>
      <div className="row wraps small soft">
        <span>#{checkpoint.id}</span>
        {checkpoint.label && <span>{title}</span>}
        <Time at={checkpoint.time} />
        <span>{count(filesIn(checkpoint), "file")}</span>
        <Counts checkpoint={checkpoint} />
        {checkpoint.undone && <Badge>undone since</Badge>}
      </div>
      <ul className={css.authors}>
        {[...authors].sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind)).map((author, index) => (
          <AuthorItem key={index} author={author} titles={titles} />
        ))}
        {cause.kind === "undo" && cause.of.slice(0, 10).map((id) => <Related key={id} icon="undo" words="Took back" id={id} />)}
        {cause.kind === "redo" && <Related icon="redo" words="Took back the undo" id={cause.of} />}
        {cause.kind === "restore" && <Related icon="timeline" words="Set files to what they were after" id={cause.to} />}
      </ul>
      {remarks.length > 0 && (
        <ul className={css.remarks}>
          {remarks.slice(0, 20).map(({ path, message }) => (
            <li key={shown(path) + message}>
              <code>{shown(path)}</code>: {message}.
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

const Related = ({ icon, words, id }: { icon: IconName; words: string; id: number }) => (
  <li>
    <Icon name={icon} size={16} />
    <span>
      {words} <a href={to("timeline", String(id))}>#{id}</a>
    </span>
  </li>
);

function AuthorItem({ author, titles }: { author: Author; titles: ReadonlyMap<string, string> }) {
  switch (author.kind) {
    case "conversation":
      return (
        <li>
          <Icon name="agent" size={16} />
          <span>
            The agent, in <a href={to("chat", author.id)}>{titles.get(author.id) || "a conversation"}</a>
            {author.call && <span className="soft">, turn {author.call.split(".")[0]}</span>}
            {" · "}
            <a href={to("timeline", "", { conversation: author.id })}>all it changed</a>
          </span>
        </li>
      );
    case "command":
      return (
        <li>
          <Icon name="terminal" size={16} />
          <code className={css.line}>{author.line.trim()}</code>
        </li>
      );
    case "ssh":
      return (
        <li>
          <Icon name="network" size={16} />
          <span>An SSH session</span>
        </li>
      );
    case "api":
      return (
        <li>
          <Icon name="user" size={16} />
          <span>
            A file call: <code>{author.call}</code>
          </span>
        </li>
      );
  }
}
