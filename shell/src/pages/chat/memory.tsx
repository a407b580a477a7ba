// What the agent remembers from one conversation to the next. Changed and removed here, it is so at once.

import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useDeferredValue, useState, type FormEvent } from "react";
import { get, post, type Of } from "../../api/client";
import { Button, Empty, Input, Skeleton, Trouble } from "../../ui/basics";
import { Dialog, sayError } from "../../ui/overlay";
import { Fact } from "./memory-fact";
import css from "./memory.module.css";

export default function Memory({ onClose, onOpen }: { onClose: () => void; onOpen: (id: string) => void }) {
  const [words, setWords] = useState("");
  const query = useDeferredValue(words.trim());
  return (
    <Dialog wide title="What is remembered" open onClose={onClose}>
      <p className="soft">Facts that the agent keeps from one conversation to the next. Deleted means gone.</p>
      <AddFact />
      <Input type="search" placeholder="Search by word or meaning" aria-label="Search what is remembered" value={words} onChange={(event) => setWords(event.target.value)} />
      {query ? <Found query={query} onOpen={onOpen} /> : <All onOpen={onOpen} />}
    </Dialog>
  );
}

function AddFact() {
  const client = useQueryClient();
  const [text, setText] = useState("");
  const add = useMutation({
    mutationFn: () => post<Of<"FactInfo">>("/conductor/memory", { text: text.trim() }),
    onSuccess: () => {
      setText("");
      return client.invalidateQueries({ queryKey: ["memory"] });
    },
    onError: sayError,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) add.mutate();
  };
  return (
    <form className={css.add} onSubmit={submit}>
      <Input className="grow" placeholder="The staging server is called otter." aria-label="A fact to remember" value={text} onChange={(event) => setText(event.target.value)} />
      <Button type="submit" look="primary" icon="plus" busy={add.isPending} disabled={text.trim() === ""}>
        Remember
      </Button>
    </form>
  );
}

function All({ onOpen }: { onOpen: (id: string) => void }) {
  const { data, error, isPending, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ["memory", "all"],
    queryFn: ({ pageParam }) => get<Of<"FactList">>("/conductor/memory", { limit: 50, before: pageParam }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    staleTime: 0,
  });
  if (error) return <Trouble error={error} retry={() => void refetch()} />;
  if (isPending) return <Holder />;
  const facts = data.pages.flatMap((page) => page.facts);
  if (facts.length === 0) {
    return (
      <Empty icon="memory" title="Nothing is remembered yet">
        Tell the agent to remember something, or write down a fact above.
      </Empty>
    );
  }
  return (
    <>
      <Facts facts={facts} onOpen={onOpen} />
      {hasNextPage && (
        <Button look="quiet" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show older ones
        </Button>
      )}
    </>
  );
}

function Found({ query, onOpen }: { query: string; onOpen: (id: string) => void }) {
  const { data, error, isPending } = useQuery({
    queryKey: ["memory", "search", query],
    queryFn: ({ signal }) => get<Of<"Recall">>("/conductor/memory/search", { q: query, limit: 30 }, { signal }),
    placeholderData: keepPreviousData,
  });
  if (error) return <Trouble error={error} />;
  if (isPending) return <Holder />;
  return (
    <>
      {data.note && <p className="soft small">{data.note}</p>}
      {data.facts.length === 0 ? <p className="soft">Nothing that is remembered is about that.</p> : <Facts facts={data.facts} onOpen={onOpen} />}
    </>
  );
}

const Facts = ({ facts, onOpen }: { facts: Of<"FactInfo">[]; onOpen: (id: string) => void }) => (
  <ul className={css.facts}>
    {facts.map((fact) => (
      <Fact key={fact.id} fact={fact} onOpen={onOpen} />
    ))}
  </ul>
);

const Holder = () => (
  <div className="column">
    <Skeleton height={44} />
    <Skeleton height={44} />
    <Skeleton height={44} />
  </div>
);
