// The list of checkpoints as it grows: further back while it is scrolled, and at its head as they come.

import { useInfiniteQuery, useQuery, useQueryClient, type InfiniteData } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { get, type Of } from "../../api/client";
import { useEvent, type Message } from "../../api/events";
import { find, listHistory, show, type CheckpointPage } from "./calls";
import { amended, arrived, joined } from "./feed";
import type { Checkpoint } from "./words";

export interface FeedFilter {
  path: string;
  conversation: string;
  labelled: boolean;
}

type Feed = InfiniteData<CheckpointPage, number | undefined>;

// Not one of the words that are made old by every checkpoint: all pages would be asked for again.
const KEY = "checkpoints";
const PAGE = 100;

const asked = ({ path, conversation, labelled }: FeedFilter) => ({ path: path || undefined, conversation: conversation || undefined, labelled });

export function useFeed(filter: FeedFilter) {
  const client = useQueryClient();
  const { path, conversation, labelled } = filter;
  const key = useMemo(() => [KEY, path, conversation, labelled], [path, conversation, labelled]);
  const feed = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => listHistory({ ...asked(filter), before: pageParam, limit: PAGE }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    staleTime: 0,
    refetchOnWindowFocus: false,
  });
  const hear = useCallback(
    ({ checkpoint }: Message<"checkpoint">) => {
      // What an undo means for older ones only the supervisor knows.
      if (checkpoint.cause.kind !== "change") return void client.invalidateQueries({ queryKey: [KEY] });
      const add = (newer: readonly Checkpoint[]) => client.setQueryData<Feed>(key, (known) => known && { ...known, pages: arrived(known.pages, newer) });
      if (!path && !conversation && !labelled) return void add([checkpoint]);
      // Whether it belongs here is not told with it.
      const newest = joined(client.getQueryData<Feed>(key)?.pages ?? [])[0]?.id;
      void listHistory({ ...asked({ path, conversation, labelled }), after: newest, limit: PAGE }).then(({ checkpoints }) => add(checkpoints), () => {});
    },
    [client, key, path, conversation, labelled],
  );
  useEvent("checkpoint", hear);
  const checkpoints = useMemo(() => joined(feed.data?.pages ?? []), [feed.data]);
  return { ...feed, checkpoints };
}

/** Shows the name of a checkpoint wherever it stands. */
export function useRename() {
  const client = useQueryClient();
  return useCallback(
    (id: number, label: string | null) => {
      client.setQueriesData<Feed>({ queryKey: [KEY] }, (known) => known && { ...known, pages: amended(known.pages, id, { label }) });
      void client.invalidateQueries({ queryKey: ["history"] });
    },
    [client],
  );
}

/** One checkpoint that may be far down the list. */
export const useCheckpoint = (id: number | null, known: Checkpoint | undefined) =>
  useQuery({ queryKey: ["history", "one", id], queryFn: () => find(id!), enabled: id !== null && !known, staleTime: 5000 });

/** What a checkpoint changed stays as it is. */
export const useChanges = (id: number, limit: number, enabled = true) =>
  useQuery({ queryKey: ["checkpoint", id, limit], queryFn: () => show(id, { limit }), staleTime: Infinity, enabled });

/** The titles of conversations by their id. */
export function useTitles(): ReadonlyMap<string, string> {
  const { data } = useQuery({ queryKey: ["conversations"], queryFn: () => get<Of<"ConversationList">>("/conductor/conversations"), staleTime: 10_000 });
  return useMemo(() => new Map(data?.conversations.map(({ id, title }) => [id, title])), [data]);
}
