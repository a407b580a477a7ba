// Where a conversation acts may be another sandbox than the one this page is of. Both are on this origin.

import { get, LONG_PATIENCE, post, request, Refusal, type Of } from "../../api/client";
import { gateway, role as ofPage } from "../../api/mount";
import { to } from "../../app/router";
import type { Role } from "./calls";
import { numbered } from "./message";

const below = (role: Role, path: string) => (role === "dev" ? `/dev${path}` : path);

/** The address of a file on the desktop of that role; none for what lies outside of the workspace. */
export function fileHref(path: string, role: string): string | null {
  if (path.startsWith("/") && !/^\/workspace(\/|$)/.test(path)) return null;
  const inside = path.replace(/^\/workspace\/?/, "").replace(/^\.\/?/, "");
  if (inside.split("/").includes("..")) return null;
  const place = to("files", inside);
  return role === ofPage || (role !== "live" && role !== "dev") ? place : `${gateway(below(role, "/")).href}${place}`;
}

/** Takes the last undo back. */
export const redo = (role: Role) => post<Of<"Outcome">>(below(role, "/supervisor/history/redo"), {}, { of: "gateway", patience: LONG_PATIENCE });

/** Its checkpoints, the newest first. */
export const checkpointsOf = (role: Role, conversation: string) =>
  get<Of<"CheckpointPage">>(below(role, "/supervisor/history"), { conversation, limit: 1000 }, { of: "gateway" });

const TRIES = 50;

/** Puts a file where the conversation finds it, under a name that is free, and gives its path. */
export async function upload(role: Role, file: File, signal: AbortSignal): Promise<string> {
  for (let number = 1; number <= TRIES; number++) {
    const path = `/workspace/uploads/${numbered(file.name, number)}`;
    try {
      await request(below(role, "/supervisor/files/content"), {
        of: "gateway",
        method: "PUT",
        query: { path, parents: true },
        headers: { "if-none-match": "*", "content-type": "application/octet-stream" },
        body: file,
        patience: LONG_PATIENCE,
        signal,
      });
      return path;
    } catch (error) {
      const taken = error instanceof Refusal && (error.status === 412 || error.kind === "conflict" || error.kind === "exists");
      if (!taken) throw error;
    }
  }
  throw new Error(`there are ${TRIES} files called ${file.name} already`);
}
