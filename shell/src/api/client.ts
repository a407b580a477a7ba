// Requests to the sandbox this page is of, and to the gateway for what it lets pages read.

import { address, gateway, type Query } from "./mount";
import type { components } from "./schema";

export type Schemas = components["schemas"];
/** A type of the API by its name in docs/openapi.json. */
export type Of<Name extends keyof Schemas> = Schemas[Name];

/** What an answer that is not a success says, in the shape of every API of Nacre. */
export class Refusal extends Error {
  readonly status: number;
  readonly kind: string;
  readonly hint: string | undefined;

  constructor(status: number, body: unknown) {
    const error = (body as { error?: { kind?: string; message?: string; hint?: string } } | null)?.error;
    super(error?.message ?? `the answer was ${status}`);
    this.status = status;
    this.kind = error?.kind ?? "unknown";
    this.hint = error?.hint;
  }
}

/** For a person: what went wrong and, where it is known, what to do. */
export function inWords(error: unknown): string {
  const sentence = (words: string) => `${words.charAt(0).toUpperCase()}${words.slice(1).replace(/\.$/, "")}.`;
  if (error instanceof Refusal) return sentence(error.message) + (error.hint ? ` ${sentence(error.hint)}` : "");
  if (error instanceof DOMException && error.name === "TimeoutError") return "Your computer took too long to answer.";
  if (error instanceof TypeError) return "Your computer cannot be reached.";
  return sentence(error instanceof Error ? error.message : String(error));
}

const PATIENCE = 20_000;
/** Undoing many files takes its time. */
export const LONG_PATIENCE = 600_000;

interface Options extends Omit<RequestInit, "body"> {
  query?: Query | undefined;
  body?: BodyInit | null | undefined;
  patience?: number | undefined;
  /** Ask the gateway in place of the sandbox; pages may only read there. */
  of?: "sandbox" | "gateway";
}

/** Sends a request; throws a `Refusal` unless the answer is a success. */
export async function request(path: string, options: Options = {}): Promise<Response> {
  const { query, patience = PATIENCE, of = "sandbox", signal, ...init } = options;
  const url = of === "gateway" ? gateway(path, query) : address(path, query);
  const limit = AbortSignal.timeout(patience);
  const response = await fetch(url, {
    ...init,
    headers: { accept: "application/json", ...init.headers },
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  });
  if (response.status === 401 && !response.ok) signedOut();
  if (!response.ok) throw new Refusal(response.status, await response.json().catch(() => null));
  return response;
}

/** A session that has ended is opened again where people sign in. */
function signedOut(): void {
  const back = location.pathname + location.hash;
  location.assign(new URL(`login?return=${encodeURIComponent(back)}`, gateway("/")));
}

async function json<T>(path: string, options?: Options): Promise<T> {
  const response = await request(path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

const sending = (method: string) => <T>(path: string, body?: unknown, options?: Options) =>
  json<T>(path, {
    ...options,
    method,
    body: body === undefined ? null : JSON.stringify(body),
    headers: { "content-type": "application/json", ...options?.headers },
  });

export const get = <T>(path: string, query?: Query, options?: Options) => json<T>(path, { ...options, query });
export const post = sending("POST");
export const put = sending("PUT");
export const patch = sending("PATCH");
export const remove = sending("DELETE");

/** Reads one of the gateway's lists. */
export const ask = <T>(path: string, query?: Query) => json<T>(path, { query, of: "gateway" });

/** Each line of a stream of JSON objects, as it arrives. */
export async function* lines<T>(response: Response): AsyncGenerator<T> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) if (line.trim()) yield JSON.parse(line) as T;
    }
    if (rest.trim()) yield JSON.parse(rest) as T;
  } finally {
    await reader.cancel().catch(() => {});
  }
}
