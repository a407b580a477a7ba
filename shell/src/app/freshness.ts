// Events make what was asked for old. Which event makes what old is here, and nowhere else.

import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { events } from "../api/events";

/** Keys of queries begin with one of these; whoever adds a kind of data adds a line here. */
const STALE: Record<string, readonly string[]> = {
  checkpoint: ["history"],
  restored: ["history", "files"],
  process: ["processes", "health"],
  process_gone: ["processes", "health"],
  config: ["processes", "health"],
  files_lost: ["files"],
  conversation: ["conversations"],
};
const OFTEN = 150;

export function useFreshness(): void {
  const client = useQueryClient();
  useEffect(() => {
    const waiting = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      for (const key of waiting) void client.invalidateQueries({ queryKey: [key] });
      waiting.clear();
    };
    return events.on("*", ({ type }) => {
      // After a gap, or with another sandbox behind the address, nothing is known to be current.
      if (type === "gap" || type === "hello") void client.invalidateQueries();
      for (const key of STALE[type] ?? []) waiting.add(key);
      if (waiting.size > 0) timer ??= setTimeout(flush, OFTEN);
    });
  }, [client]);
}
