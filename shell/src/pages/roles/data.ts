// What is known about the two roles. Each is asked through its own address, so that one answers when the
// other does not.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ask, type Of } from "../../api/client";
import type { Process } from "../../ui/process";

export type Role = "live" | "dev";
const OFTEN = 5000;
const MOVING = 1000;

const at = (role: Role, path: string) => (role === "dev" ? `/dev${path}` : path);

export const isWatched = (roles: Of<"RolesStatus"> | undefined) => (roles?.last_swap?.watched_until ?? 0) > Date.now();

export function useRoles() {
  return useQuery({
    queryKey: ["roles"],
    queryFn: () => ask<Of<"RolesStatus">>("/admin/sandboxes/roles"),
    refetchInterval: ({ state: { data } }) => (data?.copying || isWatched(data) ? MOVING : OFTEN),
  });
}

/** Health, processes and use of one of them. */
export function useRole(role: Role, running: boolean) {
  const how = { enabled: running, refetchInterval: OFTEN, retry: false };
  const health = useQuery({ queryKey: ["health", role], queryFn: () => ask<Of<"Health">>(at(role, "/supervisor/health")), ...how });
  const processes = useQuery({
    queryKey: ["processes", role],
    queryFn: () => ask<Omit<Of<"ProcessList">, "processes"> & { processes: Process[] }>(at(role, "/supervisor/processes")),
    ...how,
  });
  const commands = useQuery({ queryKey: ["commands", role], queryFn: () => ask<Of<"CommandList">>(at(role, "/supervisor/commands")), ...how });
  const stats = useQuery({ queryKey: ["roles", "stats", role], queryFn: () => ask<Of<"Stats">>(`/admin/sandboxes/${role}/stats`), ...how });
  return { health, processes, commands, stats, cpu: useCpu(stats.data, stats.dataUpdatedAt) };
}

/** Hundredths of a core between two looks; null until there were two. */
export function cpuShare(before: { used: number; at: number } | null, used: number, at: number): number | null {
  if (!before || at <= before.at || used < before.used) return null;
  return (used - before.used) / 10 / (at - before.at);
}

function useCpu(stats: Of<"Stats"> | undefined, at: number): number | null {
  const before = useRef<{ used: number; at: number } | null>(null);
  const [share, setShare] = useState<number | null>(null);
  const used = stats?.cpu_usage_us ?? null;
  useEffect(() => {
    if (used === null) return;
    setShare((old) => cpuShare(before.current, used, at) ?? old);
    before.current = { used, at };
  }, [used, at]);
  return share;
}
