// What is shown, as it stands in the address: `#/timeline/ID?path=&who=&compare=ID`.

import { go, to } from "../../app/router";
import { isWhoFilter, type WhoFilter } from "./feed";

export interface Shown {
  id: number | null;
  path: string;
  who: WhoFilter;
  /** Only those with a name. */
  named: boolean;
  conversation: string;
  compare: number | "now" | null;
}

const number = (word: string | null): number | null => (word && /^\d+$/.test(word) ? Number(word) : null);

export function shownAt(rest: string, query: URLSearchParams): Shown {
  const [who, compare] = [query.get("who"), query.get("compare")];
  return {
    id: number(rest),
    path: query.get("path") ?? "",
    who: isWhoFilter(who) ? who : "all",
    named: query.has("named"),
    conversation: query.get("conversation") ?? "",
    compare: compare === "now" ? "now" : number(compare),
  };
}

export function addressOf({ id, path, who, named, conversation, compare }: Shown): string {
  return to("timeline", id === null ? "" : String(id), {
    path: path || undefined,
    who: who === "all" ? undefined : who,
    named: named ? "" : undefined,
    conversation: conversation || undefined,
    compare: compare ?? undefined,
  });
}

/** Goes from what is shown to something else; a filter is no place to come back to. */
export const show = (from: Shown, change: Partial<Shown>, how: "push" | "replace" = "push") => go(addressOf({ ...from, ...change }), how);
