// The chat: conversations beside the one that is open. On its own page the address says which one that is;
// docked beside another page it keeps that to itself.

import { useCallback, useEffect, useRef, useState } from "react";
import { go, to } from "../../app/router";
import { Empty, IconButton, LinkButton, Skeleton, Trouble } from "../../ui/basics";
import { useConversations } from "./calls";
import css from "./chat.module.css";
import { Conversations } from "./conversations";
import { NewTalk } from "./new-talk";
import { Talk } from "./talk";

interface Props {
  /** The id of a conversation, `new`, or nothing for the one that was used last. */
  rest: string;
  query: URLSearchParams;
  docked?: boolean;
}

export function Chat({ rest, query, docked = false }: Props) {
  const [own, setOwn] = useState("");
  const { data, error, isFetching, refetch } = useConversations();
  const all = data?.conversations;
  const wanted = docked ? own : rest;
  const id = wanted || (all ? (all[0]?.id ?? "new") : "");
  const { frame, wide, narrow, shown, toggle, close } = useList(docked);
  const onOpen = useCallback(
    (next: string, how: "push" | "replace" = "push") => {
      close();
      if (docked) setOwn(next);
      else go(to("chat", next), how);
    },
    [docked, close],
  );
  useEffect(() => {
    // From then on it is this one, whichever is used last.
    if (!wanted && id) onOpen(id, "replace");
  }, [wanted, id, onOpen]);
  const escape = (event: React.KeyboardEvent) => {
    if (event.key !== "Escape" || !narrow) return;
    event.stopPropagation();
    close();
    frame.current?.querySelector<HTMLElement>("[aria-controls='conversations']")?.focus();
  };
  const info = all?.find((one) => one.id === id);
  const lead = <IconButton className={css.lead} label="Conversations" icon="dock" aria-expanded={shown} aria-controls="conversations" onClick={toggle} />;
  return (
    <div ref={frame} className={css.chat} data-wide={wide} data-narrow={narrow} onKeyDownCapture={escape}>
      <div id="conversations" className={css.side}>
        <Conversations current={id} onOpen={onOpen} onClose={close} />
      </div>
      <div className={css.shade} onClick={close} />
      {id === "new" ? (
        <NewTalk docked={docked} lead={lead} words={query.get("text")} onOpen={onOpen} />
      ) : info ? (
        <Talk key={id} info={info} docked={docked} lead={lead} at={Number(query.get("at")) || null} onOpen={onOpen} />
      ) : (
        <div className={css.other}>
          <header className={css.bar}>{lead}</header>
          {error ? <Trouble error={error} retry={() => void refetch()} /> : all && !isFetching ? <Unknown id={id} /> : <Loading />}
        </div>
      )}
    </div>
  );
}

function Unknown({ id }: { id: string }) {
  return (
    <Empty icon="chat" title="This conversation is not there" action={<LinkButton look="primary" href={to("chat", "new")}>Begin another</LinkButton>}>
      {id} was deleted, or is of another computer.
    </Empty>
  );
}

function Loading() {
  return (
    <div className="column" role="status" aria-label="Loading conversations" style={{ padding: 24 }}>
      <Skeleton height={24} width="40%" />
      <Skeleton height={80} />
    </div>
  );
}

const NARROW = 760;
const KEY = "nacre.chat.list";

/** The list is beside the conversation where there is room, and over it where there is not. */
function useList(docked: boolean) {
  const frame = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(() => !docked && stored() !== "away");
  const [narrow, setNarrow] = useState(false);
  const [small, setSmall] = useState(false);
  const close = useCallback(() => setNarrow(false), []);
  useEffect(() => {
    if (!frame.current) return;
    const sizes = new ResizeObserver(([entry]) => setSmall((entry?.contentRect.width ?? NARROW) < NARROW));
    sizes.observe(frame.current);
    return () => sizes.disconnect();
  }, []);
  useEffect(() => {
    if (narrow) frame.current?.querySelector<HTMLElement>("#conversations button")?.focus();
  }, [narrow]);
  const toggle = useCallback(() => {
    if (small) return setNarrow(!narrow);
    store(wide ? "away" : "there");
    setWide(!wide);
  }, [small, narrow, wide]);
  return { frame, wide, narrow: narrow && small, shown: small ? narrow : wide, toggle, close };
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function store(value: string): void {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // A browser that keeps nothing: it holds until the page is closed.
  }
}
