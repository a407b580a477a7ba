// One fact: who told it, and a way to put it right or to be rid of it.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { put, remove, type Of } from "../../api/client";
import { Badge, Button, IconButton, Input } from "../../ui/basics";
import { sayError } from "../../ui/overlay";
import { Time } from "../../ui/time";
import css from "./memory.module.css";

type Doing = "edit" | "delete" | null;

export function Fact({ fact, onOpen }: { fact: Of<"FactInfo">; onOpen: (id: string) => void }) {
  const client = useQueryClient();
  const [doing, setDoing] = useState<Doing>(null);
  const forget = useMutation({
    mutationFn: () => remove<void>(`/conductor/memory/${fact.id}`),
    onSuccess: () => client.invalidateQueries({ queryKey: ["memory"] }),
    onError: sayError,
  });
  if (doing === "edit") return <EditFact fact={fact} onDone={() => setDoing(null)} />;
  return (
    <li className={css.fact}>
      <div className={css.text}>
        <span>{fact.text}</span>
        <span className={css.source}>
          <Source source={fact.source} onOpen={onOpen} />
          <Time at={fact.changed_at} />
          {fact.tags.map((tag) => (
            <Badge key={tag}>{tag}</Badge>
          ))}
        </span>
      </div>
      {doing === "delete" ? (
        <span className={css.acts}>
          <Button small look="danger" autoFocus busy={forget.isPending} onClick={() => forget.mutate()}>
            Delete for good
          </Button>
          <Button small onClick={() => setDoing(null)}>
            Keep
          </Button>
        </span>
      ) : (
        <span className={css.acts}>
          <IconButton small label={`Change: ${fact.text}`} icon="edit" onClick={() => setDoing("edit")} />
          <IconButton small label={`Delete: ${fact.text}`} icon="trash" onClick={() => setDoing("delete")} />
        </span>
      )}
    </li>
  );
}

/** `owner`, or the conversation and the call that told it. */
function Source({ source, onOpen }: { source: string; onOpen: (id: string) => void }) {
  const [id] = /\bc-[0-9a-z]+/.exec(source) ?? [];
  if (source === "owner") return <span>you</span>;
  if (!id) return <span>{source}</span>;
  return (
    <button type="button" className={css.link} onClick={() => onOpen(id)}>
      a conversation
    </button>
  );
}

function EditFact({ fact, onDone }: { fact: Of<"FactInfo">; onDone: () => void }) {
  const client = useQueryClient();
  const [text, setText] = useState(fact.text);
  const [tags, setTags] = useState(fact.tags.join(", "));
  const keep = useMutation({
    mutationFn: () => put<Of<"FactInfo">>(`/conductor/memory/${fact.id}`, { text: text.trim(), tags: tags.split(",").map((tag) => tag.trim()).filter(Boolean) }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["memory"] }).then(onDone),
    onError: sayError,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) keep.mutate();
  };
  return (
    <li>
      <form className={css.edit} onSubmit={submit}>
        <Input autoFocus aria-label="The fact" value={text} onChange={(event) => setText(event.target.value)} />
        <Input aria-label="Tags, with commas between them" placeholder="Tags, with commas between them" value={tags} onChange={(event) => setTags(event.target.value)} />
        <span className={css.acts}>
          <Button small type="submit" look="primary" busy={keep.isPending} disabled={text.trim() === ""}>
            Save
          </Button>
          <Button small onClick={onDone}>
            Cancel
          </Button>
        </span>
      </form>
    </li>
  );
}
