// What a sandbox may reach, did reach, and what listens in it.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { ask, type Of } from "../../api/client";

export type Role = "live" | "dev";
const OFTEN = 5000;

export function useEgress(role: Role) {
  return useQuery({ queryKey: ["egress", role], queryFn: () => ask<Of<"EgressView">>(`/admin/sandboxes/${role}/egress`), refetchInterval: OFTEN });
}

export function usePorts(role: Role) {
  return useQuery({ queryKey: ["ports", role], queryFn: () => ask<Of<"PortList">>(`${role === "dev" ? "/dev" : ""}/supervisor/ports`), refetchInterval: OFTEN });
}

/** Newest first. It is live while only the newest are shown: whoever looks further back reads in peace. */
export function useLog(role: Role, refused: boolean) {
  return useInfiniteQuery({
    queryKey: ["egress-log", role, refused],
    queryFn: ({ pageParam }) => ask<Of<"EgressLog">>("/admin/sandboxes/egress/log", { sandbox: role, limit: 200, before: pageParam, refused: refused || undefined }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: ({ state: { data } }) => ((data?.pages.length ?? 1) > 1 ? false : OFTEN),
  });
}

export function useHasDev(): boolean {
  const { data } = useQuery({ queryKey: ["roles"], queryFn: () => ask<Of<"RolesStatus">>("/admin/sandboxes/roles") });
  return Boolean(data?.dev);
}
