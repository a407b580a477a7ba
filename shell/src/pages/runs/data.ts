// Runs, and the stream of one of them.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ask, request, type Of } from "../../api/client";
import { follow } from "../../ui/follow";
import { filesOf } from "./patch";
import { Story } from "./story";
import { isOver } from "./words";

export function useRuns() {
  return useQuery({
    queryKey: ["runs"],
    queryFn: () => ask<Of<"RunList">>("/admin/sandboxes/runs"),
    refetchInterval: ({ state: { data } }) => (data?.runs.some((run) => !isOver(run)) ? 2000 : 10_000),
  });
}

export function useRun(id: string) {
  return useQuery({
    queryKey: ["runs", id],
    queryFn: () => ask<Of<"RunInfo">>(`/admin/sandboxes/runs/${encodeURIComponent(id)}`),
    refetchInterval: ({ state: { data } }) => (data && isOver(data) ? false : 3000),
  });
}

/** What the run changed, by file; there when it is over. */
export function usePatch(id: string, wanted: boolean) {
  return useQuery({
    queryKey: ["runs", id, "patch"],
    enabled: wanted,
    staleTime: Infinity,
    queryFn: async () => filesOf(await (await request(`/admin/sandboxes/runs/${encodeURIComponent(id)}/patch`, { of: "gateway", headers: { accept: "text/x-diff" } })).text()),
  });
}

/** What happened, from the first event on, and what happens. */
export function useStory(id: string): { story: Story; connected: boolean; error: unknown } {
  const client = useQueryClient();
  const [shown, setShown] = useState(() => ({ story: new Story(), connected: false, error: null as unknown }));
  useEffect(() => {
    const story = new Story();
    const control = new AbortController();
    let [frame, connected] = [0, false];
    // Many lines come at once; they are shown together.
    const show = (error: unknown = null) => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => setShown({ story, connected, error }));
    };
    const hear = (event: Of<"RunEvent">) => {
      story.add(event);
      show();
      return story.ended !== null;
    };
    const path = `/admin/sandboxes/runs/${encodeURIComponent(id)}/events`;
    void follow<Of<"RunEvent">>({ path, of: "gateway", signal: control.signal, hear, state: (now) => ((connected = now), show()) })
      .then(() => void client.invalidateQueries({ queryKey: ["runs"] }))
      .catch(show);
    return () => {
      control.abort();
      cancelAnimationFrame(frame);
    };
  }, [id, client]);
  return shown;
}
