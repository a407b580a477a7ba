// What is asked of the sandbox about its history.

import { get, LONG_PATIENCE, post, request, type Of } from "../../api/client";
import { address } from "../../api/mount";
import { query } from "../files/paths";

export type Changes = Of<"Changes">;
export type CheckpointPage = Of<"CheckpointPage">;
export type FileChange = Of<"FileChange">;
export type Outcome = Of<"Outcome">;
export type Conflict = Of<"Conflict">;
export type FileVersion = Of<"FileVersion">;

/** Looking at all files for the first time takes its time, and every answer waits for it. */
const patient = { patience: LONG_PATIENCE };

export interface ListQuery {
  before?: number | undefined;
  after?: number | undefined;
  since?: number | undefined;
  limit?: number | undefined;
  path?: string | undefined;
  conversation?: string | undefined;
  labelled?: boolean | undefined;
}

export const listHistory = (wanted: ListQuery): Promise<CheckpointPage> => get(`/supervisor/history${query({ ...wanted })}`, undefined, patient);

export interface ShowQuery {
  path?: string | undefined;
  limit?: number | undefined;
  diff?: boolean | undefined;
}

export const show = (id: number, wanted: ShowQuery = {}): Promise<Changes> => get(`/supervisor/history/checkpoints/${id}${query({ ...wanted })}`, undefined, patient);

/** One checkpoint as the list has it, which also knows whether it is undone. */
export async function find(id: number): Promise<Of<"CheckpointInfo"> | null> {
  const { checkpoints } = await listHistory({ before: id + 1, limit: 1 });
  return checkpoints[0]?.id === id ? checkpoints[0] : null;
}

/** The newest checkpoint that changed a path: right after a change, the one that recorded it. */
export async function newestOf(path: string): Promise<Of<"CheckpointInfo"> | null> {
  return (await listHistory({ path, limit: 1 })).checkpoints[0] ?? null;
}

/** From one moment to another, or to the present. */
export const between = (from: number, to: number | undefined, wanted: { path?: string | undefined; limit?: number | undefined }): Promise<Changes> =>
  get(`/supervisor/history/diff${query({ from, to, ...wanted })}`, undefined, patient);

export const status = (): Promise<Of<"HistoryStatus">> => get("/supervisor/history/status", undefined, patient);

export const name = (id: number, label: string | null) => post<void>(`/supervisor/history/checkpoints/${id}/label`, { label });

const versionPath = (content: string) => `/supervisor/history/file${query({ content })}`;

/** The bytes of a file as it was, by the id of its content. */
export async function bytesOf(content: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await request(versionPath(content), patient);
  return new Uint8Array(await response.arrayBuffer());
}

export const versionAddress = (content: string): string => address(versionPath(content)).href;
