// What is asked of the sandbox about its files. Queries are written here, not by the client: in a path
// of this API a plus is a plus.

import { get, LONG_PATIENCE, post, Refusal, request, type Of } from "../../api/client";
import { address } from "../../api/mount";
import { query, quoted, type WirePath } from "./paths";

export type Stat = Of<"Stat">;
export type Listing = Of<"Listing">;

/** Entries of a folder that are asked for at once. */
export const PAGE = 2000;

export function list(path: string, after?: WirePath | null, limit = PAGE): Promise<Listing> {
  const rest = after ? `&after=${quoted(after)}` : "";
  return get(`/supervisor/files/list${query({ path: path || ".", limit })}${rest}`);
}

export const stat = (path: string, follow = true): Promise<Stat> => get(`/supervisor/files/stat${query({ path: path || ".", follow })}`);

/** Whether there is something under a name, wherever it leads. */
export async function exists(path: string): Promise<boolean> {
  try {
    await stat(path, false);
    return true;
  } catch (error) {
    if (error instanceof Refusal && (error.status === 404 || error.kind === "not_directory")) return false;
    throw error;
  }
}

export type Content = { kind: "text"; text: string; etag: string } | { kind: "binary" };

/** Beyond this a file is offered for download and not opened. */
export const MOST_BYTES = 2_000_000;

export async function read(path: string): Promise<Content> {
  const response = await request(contentPath(path), { patience: 60_000 });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = asText(bytes);
  return text === null ? { kind: "binary" } : { kind: "text", text, etag: response.headers.get("etag") ?? "" };
}

/** Bytes as text, or null when they are none: what holds a zero or is not UTF-8 is not. */
export function asText(bytes: Uint8Array<ArrayBuffer>): string | null {
  if (bytes.subarray(0, 8192).includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

export const contentPath = (path: string): string => `/supervisor/files/content${query({ path, parents: false })}`;

/** Which version may be replaced: the one with this tag, none at all (`new`), or any. */
export type Expected = { etag: string } | "new" | "any";

export const condition = (expected: Expected): Record<string, string> =>
  expected === "any" ? {} : expected === "new" ? { "if-none-match": "*" } : { "if-match": expected.etag };

export async function write(path: string, body: BodyInit, expected: Expected): Promise<Stat> {
  const headers = { "content-type": "application/octet-stream", ...condition(expected) };
  const response = await request(`/supervisor/files/content${query({ path, parents: true })}`, { method: "PUT", body, headers, patience: 60_000 });
  return (await response.json()) as Stat;
}

// The path in the query names the call in the history; the body is what is done.
export const makeFolder = (path: string, parents = false) => post<Stat>(`/supervisor/files/mkdir${query({ path })}`, { path, parents });
export const move = (from: string, to: string, overwrite = false) => post<Stat>(`/supervisor/files/move${query({ path: to })}`, { from, to, overwrite });
export const copy = (from: string, to: string) => post<Stat>(`/supervisor/files/copy${query({ path: to })}`, { from, to, overwrite: false }, { patience: LONG_PATIENCE });
export const removeAll = (path: string) => post<void>(`/supervisor/files/remove${query({ path })}`, { path, recursive: true }, { patience: LONG_PATIENCE });

const segments = (path: string) => path.split("/").map(encodeURIComponent).join("/");

/** Where the browser itself gets a file; `version` makes it ask again when the file is another one. */
export const viewAddress = (path: string, version?: string): string => address(`/files/${segments(path)}${version ? `?v=${encodeURIComponent(version)}` : ""}`).href;
export const downloadAddress = (path: string): string => address(`/files/${segments(path)}?download`).href;
export const archiveAddress = (path: string): string => address(`/supervisor/files/archive${query({ path: path || "." })}`).href;
