// The bar above a conversation: its name, how it is, and what can be done with all of it.

import { useQuery } from "@tanstack/react-query";
import { memo, Suspense, useState, type ReactNode } from "react";
import { get, Refusal, type Of } from "../../api/client";
import { onDemand } from "../../app/on-demand";
import { to } from "../../app/router";
import { Badge, IconButton, LinkButton } from "../../ui/basics";
import { Confirm, Menu, type MenuItem } from "../../ui/overlay";
import { useDelete, type Info } from "./calls";
import { Rename, State } from "./conversations";
import css from "./talk.module.css";

const NOTHING: MenuItem[] = [];
const Memory = onDemand(() => import("./memory"));

interface Props {
  info: Info | null;
  docked: boolean;
  /** What opens the list of conversations. */
  lead: ReactNode;
  onOpen: (id: string) => void;
  /** What the conversation offers besides. */
  items?: MenuItem[];
}

export const Head = memo(function Head({ info, docked, lead, onOpen, items = NOTHING }: Props) {
  const [naming, setNaming] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const gone = useDelete();
  // A page has one first heading, and the dock stands beside a page.
  const Heading = docked ? "h2" : "h1";
  const title = info ? info.title || "Untitled conversation" : "New conversation";
  return (
    <header className={css.head}>
      {lead}
      {naming && info ? <Rename info={info} onDone={() => setNaming(false)} /> : <Heading className="cut-off" title={title}>{title}</Heading>}
      {info && <State info={info} />}
      {info?.parent && <Parent parent={info.parent} onOpen={onOpen} />}
      <span className={css.acts}>
        <MemoryButton onOpen={onOpen} />
        {info && <IconButton label="New conversation" icon="plus" onClick={() => onOpen("new")} />}
        {docked && <LinkButton look="quiet" icon="external" aria-label="Open as a page" title="Open as a page" href={to("chat", info?.id ?? "new")} />}
        {info && (
          <Menu
            label="What to do with this conversation"
            small={false}
            items={[{ label: "Rename", icon: "edit", act: () => setNaming(true) }, ...items, { label: "Delete", icon: "trash", danger: true, act: () => setDeleting(true) }]}
          />
        )}
      </span>
      <Confirm
        danger
        title="Delete this conversation?"
        open={deleting}
        words={`“${title}” and everything that was said in it will be gone. Files that it changed stay as they are.`}
        act={{
          label: "Delete",
          run: () => {
            if (!info) return;
            onOpen("new");
            gone.mutate(info.id);
          },
        }}
        onClose={() => setDeleting(false)}
      />
    </header>
  );
});

function Parent({ parent, onOpen }: { parent: Of<"ForkedFrom">; onOpen: (id: string) => void }) {
  return (
    <button type="button" className={css.parent} title="Go to the conversation that this was forked from" onClick={() => onOpen(parent.id)}>
      <Badge>fork</Badge>
    </button>
  );
}

/** Not there where memory cannot be reached from a page. */
function MemoryButton({ onOpen }: { onOpen: (id: string) => void }) {
  const [open, setOpen] = useState(false);
  const { data: there } = useQuery({
    queryKey: ["memory", "there"],
    queryFn: () =>
      get<Of<"FactList">>("/conductor/memory", { limit: 1 }).then(
        () => true,
        (error: unknown) => !(error instanceof Refusal && error.status < 500),
      ),
    staleTime: 300_000,
  });
  if (!there) return null;
  return (
    <>
      <IconButton label="What is remembered" icon="memory" onClick={() => setOpen(true)} />
      {open && (
        <Suspense>
          <Memory
            onClose={() => setOpen(false)}
            onOpen={(id) => {
              setOpen(false);
              onOpen(id);
            }}
          />
        </Suspense>
      )}
    </>
  );
}
