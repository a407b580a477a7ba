// Paths of the workspace, relative to it and without a slash in front; "" is the workspace itself.

import type { Of } from "../../api/client";

export type WirePath = Of<"WirePath">;

const WORKSPACE = "/workspace";

export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));
export const join = (folder: string, name: string): string => (folder ? `${folder}/${name}` : name);
export const isWithin = (path: string, folder: string): boolean => folder === "" || path === folder || path.startsWith(`${folder}/`);

/** Every folder above a path, from the outermost: `a/b/c` is in `a` and `a/b`. */
export function above(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

/** What somebody typed as a path of the workspace; null when it leads out of it. */
export function plain(typed: string): string | null {
  const parts: string[] = [];
  for (const part of typed.trim().replace(/^\/workspace(?=\/|$)/, "").split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return null;
  }
  return parts.join("/");
}

/** Of an absolute path of an event; null when it is not below the workspace or not text. */
export function relative(path: WirePath): string | null {
  if (typeof path !== "string" || !path.startsWith(`${WORKSPACE}/`)) return null;
  return path.slice(WORKSPACE.length + 1);
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** For people: a name that is not text is shown with marks in place of what cannot be read. */
export const shown = (path: WirePath): string => (typeof path === "string" ? path : new TextDecoder().decode(bytes(path.base64)));

/** A path as the value of a query. A plus there is a plus, so a space has to be written out. */
export function quoted(path: WirePath): string {
  if (typeof path === "string") return encodeURIComponent(path);
  return Array.from(bytes(path.base64), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
}

type Value = string | number | boolean | null | undefined;

/** `?a=1&b=x%20y`, without what is absent. */
export function query(values: Record<string, Value>): string {
  const parts = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== false && value !== "");
  return parts.length ? `?${parts.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")}` : "";
}

/** What keeps a name from being one, in words; null when nothing does. */
export function nameTrouble(name: string): string | null {
  if (name.trim() === "") return "A name is needed.";
  if (name === "." || name === "..") return "This name means another folder.";
  if (name.includes("/")) return "A name cannot hold a slash.";
  if (new TextEncoder().encode(name).length > 255) return "This name is too long.";
  return null;
}
