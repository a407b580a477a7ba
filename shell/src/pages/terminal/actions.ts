// Starting and ending shells, and the list of those there are.

import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { get, post, Refusal, remove, type Of } from "../../api/client";
import { remember, remembered, useRemembered } from "./memory";
import { added, arrange, closed, current, nextLabel, renamed, type Tab } from "./tabs";

type Commands = Of<"CommandList">;

const KEY = ["commands"];
/** The best shell that the sandbox has, as `nacre shell` does it. */
const SHELL = "if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi";

let looked = false;

async function list(): Promise<Commands> {
  const found = await get<Commands>("/supervisor/commands");
  if (!looked) remember(current(remembered(), found.commands));
  looked = true;
  return found;
}

async function start(client: QueryClient, how: { cwd?: string | undefined; inPlaceOf?: string }): Promise<string> {
  const { commands } = await list();
  const request: Partial<Of<"ExecRequest">> = {
    shell: SHELL,
    // Changed to what fits as soon as it is shown.
    tty: { cols: 80, rows: 24 },
    stdin: true,
    detach: true,
    label: nextLabel(commands),
    env: { COLORTERM: "truecolor" },
    ...(how.cwd && { cwd: how.cwd }),
  };
  const made = await post<Of<"CommandInfo">>("/supervisor/commands", request);
  await keep(client, () => ({ commands: [...commands, made] }));
  remember(added(remembered(), arrange(commands, remembered()), made, how.inPlaceOf));
  return made.id;
}

/** Ends it if it runs. One that is gone already is as it should be. */
async function end(client: QueryClient, id: string): Promise<void> {
  // As when the window of a terminal is closed. A shell that people type into does not listen to less.
  await post(`/supervisor/commands/${id}/signal`, { signal: "HUP" }).catch(() => {});
  await remove(`/supervisor/commands/${id}`).catch((error: unknown) => {
    if (!(error instanceof Refusal && error.status === 404)) throw error;
  });
  await keep(client, (old) => old && { commands: old.commands.filter((command) => command.id !== id) });
  remember(closed(remembered(), id));
}

/** What is known without asking. The list first and the memory after it, so that no tab is gone for a moment. */
async function keep(client: QueryClient, change: (old: Commands | undefined) => Commands | undefined): Promise<void> {
  await client.cancelQueries({ queryKey: KEY });
  client.setQueryData<Commands>(KEY, change);
}

export interface Terminals {
  tabs: Tab[];
  /** Whether it is known which there are. */
  known: boolean;
  error: unknown;
  again: () => void;
  start: (how?: { cwd?: string | undefined }) => Promise<string>;
  /** Another shell in the place of one that has ended. */
  restart: (id: string) => Promise<string>;
  close: (id: string) => Promise<void>;
  rename: (id: string, name: string) => void;
}

export function useTerminals(): Terminals {
  const client = useQueryClient();
  const memory = useRemembered();
  const { data, error, refetch } = useQuery({ queryKey: KEY, queryFn: list });
  const tabs = useMemo(() => arrange(data?.commands ?? [], memory), [data, memory]);
  const acts = useMemo(
    () => ({
      again: () => void refetch(),
      start: (how: { cwd?: string | undefined } = {}) => start(client, how),
      restart: async (id: string) => {
        const next = await start(client, { inPlaceOf: id });
        await end(client, id);
        return next;
      },
      close: (id: string) => end(client, id),
      rename: (id: string, name: string) => remember(renamed(remembered(), id, name)),
    }),
    [client, refetch],
  );
  return { tabs, known: data !== undefined, error, ...acts };
}
