// Every conversation, the last used first.

import { useEffect, useState } from "react";
import { Badge, Button, Empty, IconButton, Input, Skeleton, Trouble } from "../../ui/basics";
import { Confirm, Menu } from "../../ui/overlay";
import { Time } from "../../ui/time";
import { useChange, useConversations, useDelete, useSaid, type Info } from "./calls";
import css from "./conversations.module.css";

const PAUSE = 200;

interface Props {
  current: string;
  onOpen: (id: string) => void;
  onClose: () => void;
}

export function Conversations({ current, onOpen, onClose }: Props) {
  const { data, error, isPending, refetch } = useConversations();
  const [words, setWords] = useState("");
  const [deleting, setDeleting] = useState<Info | null>(null);
  const gone = useDelete();
  const all = data?.conversations ?? [];
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const titled = all.filter(({ title, id }) => parts.every((part) => `${title} ${id}`.toLowerCase().includes(part)));
  const sought = useLater(parts.join(" "));
  const said = useSaid(sought);
  const places = new Map(sought ? said.data?.found.map((one) => [one.id, one]) : []);
  const found = [...titled, ...all.filter((info) => places.has(info.id) && !titled.includes(info))];
  const searching = parts.length > 0 && (sought !== parts.join(" ") || said.isFetching);
  return (
    <nav className={css.nav} aria-label="Conversations">
      <div className={css.head}>
        <Button icon="plus" className={css.fresh} onClick={() => onOpen("new")}>
          New conversation
        </Button>
        <IconButton label="Put the list away" icon="close" className={css.close} onClick={onClose} />
      </div>
      <Input type="search" placeholder="Search" aria-label="Search conversations" maxLength={80} value={words} onChange={(event) => setWords(event.target.value)} />
      {error && <Trouble error={error} retry={() => void refetch()} />}
      <ul className={css.list} aria-busy={isPending}>
        {isPending && [0, 1, 2].map((index) => <li key={index} className={css.holder}><Skeleton height={44} /></li>)}
        {found.map((info) => (
          <Row key={info.id} info={info} said={places.get(info.id)?.excerpt} current={info.id === current} onOpen={onOpen} onDelete={() => setDeleting(info)} />
        ))}
      </ul>
      {data && all.length === 0 && <p className={css.none}>Conversations you begin are listed here.</p>}
      {all.length > 0 && found.length === 0 && !searching && (
        <Empty icon="search" title="Nothing was found">
          {said.data === null ? "Titles are searched; this computer cannot search what was said yet." : "No title has these words, and no message has all of them."}
        </Empty>
      )}
      {places.size > 0 && said.data?.incomplete && <p className={css.none}>There is more than could be looked at. Another word narrows it down.</p>}
      <Confirm
        danger
        title="Delete this conversation?"
        open={deleting !== null}
        words={`“${deleting?.title || "Untitled conversation"}” and everything that was said in it will be gone. Files that it changed stay as they are.`}
        act={{
          label: "Delete",
          run: () => {
            if (!deleting) return;
            gone.mutate(deleting.id);
            if (deleting.id === current) onOpen("new");
          },
        }}
        onClose={() => setDeleting(null)}
      />
    </nav>
  );
}

/** What was typed, once somebody has stopped typing. */
function useLater(words: string): string {
  const [later, setLater] = useState(words);
  useEffect(() => {
    const timer = setTimeout(() => setLater(words), PAUSE);
    return () => clearTimeout(timer);
  }, [words]);
  return words && later;
}

function Row({ info, said, current, onOpen, onDelete }: { info: Info; said: string | undefined; current: boolean; onOpen: (id: string) => void; onDelete: () => void }) {
  const [naming, setNaming] = useState(false);
  const title = info.title || "Untitled conversation";
  if (naming) return <li className={css.row}><Rename info={info} onDone={() => setNaming(false)} /></li>;
  return (
    <li className={css.row} data-current={current}>
      <button type="button" className={css.open} aria-current={current ? "true" : undefined} onClick={() => onOpen(info.id)}>
        <span className="cut-off">{title}</span>
        <span className={css.facts}>
          <State info={info} />
          <Time at={info.updated_at} />
          {info.parent && <span title="It was forked off another">fork</span>}
        </span>
        {said && <span className={css.said}>{said}</span>}
      </button>
      <Menu
        label={`What to do with ${title}`}
        items={[
          { label: "Rename", icon: "edit", act: () => setNaming(true) },
          { label: "Delete", icon: "trash", danger: true, act: onDelete },
        ]}
      />
    </li>
  );
}

export function State({ info }: { info: Info }) {
  if (info.state === "working") return <Badge tone="accent">working</Badge>;
  if (info.state === "asking") return <Badge tone="warn" title={info.about}>asks you</Badge>;
  return null;
}

/** Enter keeps the new name, Escape the old one. */
export function Rename({ info, onDone }: { info: Info; onDone: () => void }) {
  const [title, setTitle] = useState(info.title);
  const change = useChange(info.id);
  const keep = () => {
    if (title.trim() && title.trim() !== info.title) change.mutate({ title: title.trim() });
    onDone();
  };
  const press = (event: React.KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Enter") keep();
    if (event.key === "Escape") onDone();
  };
  return (
    <Input
      autoFocus
      className={css.rename}
      aria-label="Title of the conversation"
      maxLength={80}
      value={title}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setTitle(event.target.value)}
      onKeyDown={press}
      onBlur={keep}
    />
  );
}
