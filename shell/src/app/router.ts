// What is shown is in the address, behind the `#`: it works below any mount, and without a server that
// knows of pages. `#/files/src/main.ts?line=3` is the page `files` with `src/main.ts` and a query.

import { useMemo, useSyncExternalStore } from "react";

export interface Place {
  page: string;
  /** What follows the page, decoded, without a slash in front. */
  rest: string;
  query: URLSearchParams;
}

export function read(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/");
  const decoded = (part: string) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return { page: decoded(page), rest: rest.map(decoded).join("/"), query: new URLSearchParams(query) };
}

/** The address of a place, for links. */
export function to(page: string, rest = "", query: Record<string, string | number | undefined> = {}): string {
  const path = rest ? `/${rest.split("/").map(encodeURIComponent).join("/")}` : "";
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) words.set(name, String(value));
  return `#/${page}${path}${words.size ? `?${words}` : ""}`;
}

export function go(address: string, how: "push" | "replace" = "push"): void {
  if (location.hash === address) return;
  if (how === "push") location.hash = address;
  else {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

function watch(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}

export function usePlace(): Place {
  const hash = useSyncExternalStore(watch, () => location.hash);
  return useMemo(() => read(hash), [hash]);
}
