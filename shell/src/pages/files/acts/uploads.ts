// Files on their way up: a few at a time, with how far they are. They go on when the page is left.

import { useSyncExternalStore } from "react";
import { inWords, Refusal } from "../../../api/client";
import { address } from "../../../api/mount";
import { count } from "../../../ui/format";
import { say, sayError } from "../../../ui/overlay";
import { condition, exists, makeFolder } from "../calls";
import { join, nameOf, parentOf, query } from "../paths";
import type { Incoming } from "./collect";

export interface Upload {
  path: string;
  file: File;
  /** Whether something may be there. */
  replace: boolean;
  sent: number;
  state: "waiting" | "going" | "done" | "failed";
  why?: string;
}

export interface Asking {
  /** What is there already. */
  paths: readonly string[];
  answer: (what: "replace" | "skip" | null) => void;
}

interface State {
  uploads: readonly Upload[];
  asking: Asking | null;
}

const AT_ONCE = 3;
let state: State = { uploads: [], asking: null };
const going = new Set<XMLHttpRequest>();
const watchers = new Set<() => void>();

function set(change: Partial<State>): void {
  state = { ...state, ...change };
  watchers.forEach((watcher) => watcher());
}

const amend = (upload: Upload, change: Partial<Upload>) => {
  const next = { ...upload, ...change };
  set({ uploads: state.uploads.map((known) => (known.path === upload.path ? next : known)) });
  return next;
};

export const useUploads = (): State =>
  useSyncExternalStore(
    (watcher) => (watchers.add(watcher), () => void watchers.delete(watcher)),
    () => state,
  );

export async function upload(into: string, incoming: readonly Incoming[]): Promise<void> {
  try {
    const files = incoming.flatMap(({ path, file }) => (file ? [{ path: join(into, path), file }] : []));
    for (const { path, file } of incoming) if (!file) await makeFolder(join(into, path), true);
    const there = await present(files.map(({ path }) => path));
    const choice = there.size > 0 ? await ask([...there]) : "replace";
    if (choice === null) return;
    const wanted = files.filter(({ path }) => choice === "replace" || !there.has(path));
    const busy = new Set(state.uploads.filter((known) => known.state === "waiting" || known.state === "going").map(({ path }) => path));
    const fresh = wanted.filter(({ path }) => !busy.has(path)).map((one): Upload => ({ ...one, replace: there.has(one.path), sent: 0, state: "waiting" }));
    const names = new Set(fresh.map(({ path }) => path));
    set({ uploads: [...state.uploads.filter(({ path }) => !names.has(path)), ...fresh] });
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (fresh.length > 0) finish(into);
  } catch (error) {
    sayError(error);
  }
}

function ask(paths: readonly string[]): Promise<"replace" | "skip" | null> {
  return new Promise((resolve) => set({ asking: { paths, answer: (what) => (set({ asking: null }), resolve(what)) } }));
}

/** Which of these are there. In a folder that is not there, nothing is. */
async function present(paths: readonly string[]): Promise<Set<string>> {
  const folders = new Map<string, Promise<boolean>>([["", Promise.resolve(true)]]);
  const hasFolder = (path: string): Promise<boolean> => {
    const known = folders.get(path) ?? hasFolder(parentOf(path)).then((above) => above && exists(path));
    folders.set(path, known);
    return known;
  };
  const found = new Set<string>();
  const waiting = [...paths];
  const look = async () => {
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) if ((await hasFolder(parentOf(path))) && (await exists(path))) found.add(path);
  };
  await Promise.all(Array.from({ length: 6 }, look));
  return found;
}

async function work(): Promise<void> {
  for (let next = waiting(); next; next = waiting()) {
    const now = amend(next, { state: "going" });
    try {
      await send(now);
      amend(now, { state: "done", sent: now.file.size });
    } catch (error) {
      amend(now, { state: "failed", why: inWords(error) });
    }
  }
}

const waiting = () => state.uploads.find((known) => known.state === "waiting");

/** The only way to send in which a browser tells how far it is. */
function send({ path, file, ...rest }: Upload): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    going.add(request);
    request.open("PUT", address(`/supervisor/files/content${query({ path, parents: true })}`));
    request.setRequestHeader("content-type", "application/octet-stream");
    for (const [name, value] of Object.entries(condition(rest.replace ? "any" : "new"))) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded }) => amend({ path, file, ...rest }, { sent: loaded });
    request.onload = () => (request.status < 300 ? resolve() : reject(new Refusal(request.status, request.response)));
    request.onerror = () => reject(new TypeError("unreachable"));
    request.onabort = () => reject(new Error("It was stopped"));
    request.onloadend = () => going.delete(request);
    request.send(file);
  });
}

function finish(into: string): void {
  const done = state.uploads.filter(({ state }) => state === "done");
  // Others may still be on their way, and what failed stays to be read.
  if (state.uploads.some(({ state }) => state === "waiting" || state === "going")) return;
  set({ uploads: state.uploads.filter(({ state }) => state === "failed") });
  if (done.length > 0) say(done.length === 1 ? `${nameOf(done[0]!.path)} is here.` : `${count(done.length, "file")} came into ${into || "the workspace"}.`);
}

export function stopUploads(): void {
  set({ uploads: state.uploads.filter(({ state }) => state !== "waiting") });
  going.forEach((request) => request.abort());
}

export const clearUploads = () => set({ uploads: state.uploads.filter(({ state }) => state === "waiting" || state === "going") });

addEventListener("beforeunload", (event) => {
  if (going.size > 0) event.preventDefault();
});
