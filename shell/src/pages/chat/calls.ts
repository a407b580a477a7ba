// What is asked of the conductor, and what is known of conversations.

import { keepPreviousData, useMutation, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { ask, get, LONG_PATIENCE, patch, post, Refusal, remove, type Of } from "../../api/client";
import { role as ofPage } from "../../api/mount";
import { sayError } from "../../ui/overlay";

export type Info = Of<"ConversationInfo">;
export type Mode = Of<"ConversationMode">;
export type Role = "live" | "dev";

/** What a conversation is told before it is: what is absent is chosen by the computer. */
export interface Settings {
  mode: Mode;
  role?: string | null | undefined;
  model?: string | null | undefined;
}

/** As GET /conductor/models says; older gateways do not. */
export interface ModelChoices {
  models: { model: string; default?: boolean; problem?: string | null }[];
  providers: { name: string; patterns: string[] }[];
}

/** As GET /conductor/plans says; older gateways do not. */
interface Plans {
  plans: { name: string; description: string }[];
}

const KEY = ["conversations"] as const;
const at = (id: string, rest = "") => `/conductor/conversations/${encodeURIComponent(id)}${rest}`;

export const useConversations = () => useQuery({ queryKey: KEY, queryFn: () => get<Of<"ConversationList">>("/conductor/conversations"), staleTime: 10_000 });

export const create = (settings: Settings) => post<Info>("/conductor/conversations", settings);
export const send = (id: string, text: string) => post<Of<"Sent">>(at(id, "/messages"), { text }, { patience: 60_000 });
export const stop = (id: string) => post<void>(at(id, "/stop"));
export const answer = (id: string, call: string, allow: boolean) => post<void>(at(id, "/approve"), { call, allow });
export const fork = (id: string, seq?: number) => post<Info>(at(id, "/fork"), seq === undefined ? {} : { at: seq });

/** What to take back, and what to do about names that somebody changed later. */
export interface Undo {
  step?: number;
  turn?: number;
  dry_run?: boolean;
  choices?: Record<string, Of<"Choice">>;
  on_conflict?: Of<"Choice">;
}
export const undo = (id: string, wanted: Undo) => post<Of<"UndoneList">>(at(id, "/undo"), wanted, { patience: LONG_PATIENCE });

const change = (client: QueryClient, by: (all: Info[]) => Info[]) =>
  client.setQueryData<Of<"ConversationList">>(KEY, (list) => ({ conversations: by(list?.conversations ?? []) }));

/** A conversation that was just made is there before the list has been asked for again. */
export const add = (client: QueryClient, info: Info) => change(client, (all) => [info, ...all.filter(({ id }) => id !== info.id)]);

/** Its title, mode, role or model; shown at once, and put back when it is refused. */
export function useChange(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (wanted: Partial<Settings> & { title?: string }) => patch<Info>(at(id), wanted),
    onMutate: (wanted) => void change(client, (all) => all.map((info) => (info.id === id ? { ...info, ...wanted } : info))),
    onError: sayError,
    onSettled: () => client.invalidateQueries({ queryKey: KEY }),
  });
}

export function useDelete() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => remove<void>(at(id)),
    onSuccess: (_, gone) => void change(client, (all) => all.filter(({ id }) => id !== gone)),
    onError: sayError,
  });
}

/** `null` where that cannot be asked. */
const orNull = <T>(answer: Promise<T>): Promise<T | null> =>
  answer.catch((error: unknown) => {
    if (error instanceof Refusal && error.status < 500) return null;
    throw error;
  });

/** `null` where it cannot be known: any name may then be typed. */
export const useModels = () => useQuery({ queryKey: ["models"], queryFn: () => orNull(get<ModelChoices>("/conductor/models")), staleTime: 60_000 });

/** What was said, by words; `null` where it cannot be searched. `words` is empty while nothing is sought. */
export const useSaid = (words: string) =>
  useQuery({
    queryKey: [...KEY, "said", words],
    enabled: words !== "",
    queryFn: ({ signal }) => orNull(get<Of<"SaidList">>("/conductor/search", { q: words }, { signal })),
    // What was found for fewer letters is shown until there is better.
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });

/** Ways to go about a task that the agent can adopt. */
export const usePlans = (role: string) => useQuery({ queryKey: ["plans", role], queryFn: () => orNull(get<Plans>("/conductor/plans", { role })), staleTime: 60_000 });

export const useRoles = () => useQuery({ queryKey: ["roles"], queryFn: () => ask<Of<"RolesStatus">>("/admin/sandboxes/roles"), staleTime: 30_000 });

/** Where a conversation acts: as was chosen, or on dev when there is one. */
export function useActsOn(chosen: string | null | undefined): Role {
  const { data } = useRoles();
  if (chosen === "live" || chosen === "dev") return chosen;
  if (!data) return ofPage;
  return data.dev ? "dev" : "live";
}
