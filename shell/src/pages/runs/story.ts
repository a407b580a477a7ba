// What happened in a run, put together from its events: what the agent said, what it did and what came of
// it. Pieces of one thing become one item; an item that changes is a new object, so that only it is drawn
// again.

import type { Of } from "../../api/client";

export type Call = { kind: "call"; id: string; title: string; tool: string; status: "pending" | "in_progress" | "completed" | "failed"; output: string; diffs: FileDiff[] };
export type FileDiff = { path: string; before: string; after: string };
export type Item =
  | { kind: "says" | "thinks"; text: string }
  | Call
  | { kind: "output"; stream: "stdout" | "stderr"; lines: string[]; left: number }
  | { kind: "note"; text: string; bad?: boolean };
export type Step = { content: string; status: "pending" | "in_progress" | "completed" };

/** What is read of the agent's own events, which have the shape of the Agent Client Protocol. */
interface AgentEvent {
  sessionUpdate?: string;
  content?: { text?: string } | { type?: string; content?: { text?: string }; path?: string; oldText?: string | null; newText?: string }[];
  toolCallId?: string;
  title?: string;
  kind?: string;
  status?: Call["status"];
  rawOutput?: { text?: string };
  entries?: Step[];
  reason?: string;
  message?: string;
  before?: number;
  after?: number;
}

/** Of one stream of output in a row, and of one call. More is not readable in a page. */
const MOST_LINES = 2000;
const MOST_OUTPUT = 200_000;

export class Story {
  items: readonly Item[] = [];
  plan: readonly Step[] = [];
  used: Of<"RunUsage"> | null = null;
  state: Of<"RunState"> | null = null;
  ahead = 0;
  /** There when it is over. */
  ended: Of<"RunInfo"> | null = null;
  #seen = 0;
  /** What the model said before this is settled; after it, it may be void. */
  #settled = 0;

  /** Takes an event; one that was seen already changes nothing. */
  add(event: Of<"RunEvent">): void {
    if (event.seq <= this.#seen) return;
    this.#seen = event.seq;
    switch (event.type) {
      case "queued":
        this.ahead = event.ahead;
        return;
      case "state":
        this.state = event.state;
        return;
      case "usage":
        this.used = event.used;
        return;
      case "output":
        return this.#print(event.stream, event.line);
      case "agent":
        return this.#agent(event.event as AgentEvent);
      case "truncated":
        return this.#push({ kind: "note", text: "It wrote more than is kept; the rest is not here." });
      case "ended":
        this.ended = event.run;
        this.used = event.run.used;
        this.state = "ended";
        return;
    }
  }

  #agent(event: AgentEvent): void {
    const text = Array.isArray(event.content) ? "" : (event.content?.text ?? "");
    switch (event.sessionUpdate) {
      case "agent_message_chunk":
        return this.#say("says", text);
      case "agent_thought_chunk":
        return this.#say("thinks", text);
      case "tool_call":
        this.#settled = this.items.length;
        return this.#push({ kind: "call", id: event.toolCallId ?? "", title: event.title ?? "A tool", tool: event.kind ?? "other", status: event.status ?? "pending", output: "", diffs: [] });
      case "tool_call_update":
        return this.#update(event);
      case "plan":
        this.plan = event.entries ?? [];
        return;
      case "reply":
        this.#settled = this.items.length;
        return;
      case "retry":
        // What the model had begun to say is void.
        this.items = this.items.filter((item, at) => at < this.#settled || (item.kind !== "says" && item.kind !== "thinks"));
        return this.#push({ kind: "note", text: `The model is asked again: ${event.reason ?? "it did not say why"}.` });
      case "notice":
        return this.#push({ kind: "note", text: event.message ?? "" });
      case "compacted":
        return this.#push({ kind: "note", text: `What was said was made shorter for the model: about ${event.before ?? 0} to ${event.after ?? 0} tokens.` });
    }
  }

  #say(kind: "says" | "thinks", text: string): void {
    const last = this.items.at(-1);
    const open = this.items.length > this.#settled;
    if (open && last?.kind === kind) this.items = this.items.with(-1, { kind, text: last.text + text });
    else if (text) this.#push({ kind, text });
  }

  #print(stream: "stdout" | "stderr", line: string): void {
    const last = this.items.at(-1);
    if (last?.kind !== "output" || last.stream !== stream) return this.#push({ kind: "output", stream, lines: [line], left: 0 });
    // Only the item is made anew, not its lines: there may be very many.
    last.lines.push(line);
    const left = last.lines.length > MOST_LINES ? last.left + 1 : last.left;
    if (left > last.left) last.lines.shift();
    this.items = this.items.with(-1, { ...last, left });
  }

  #update({ toolCallId, status, content, rawOutput }: AgentEvent): void {
    const at = this.items.findLastIndex((item) => item.kind === "call" && item.id === toolCallId);
    if (at < 0) return;
    const call = this.items[at] as Call;
    const pieces = Array.isArray(content) ? content : [];
    const written = pieces.map((piece) => piece.content?.text ?? "").join("");
    const diffs = pieces.flatMap((piece) => (piece.type === "diff" ? [{ path: piece.path ?? "", before: piece.oldText ?? "", after: piece.newText ?? "" }] : []));
    // What came while it ran is what it wrote; without any, what the model was told stands for it.
    const output = call.output + written || (diffs.length === 0 ? (rawOutput?.text ?? "") : "");
    this.items = this.items.with(at, { ...call, status: status ?? call.status, output: output.slice(-MOST_OUTPUT), diffs: [...call.diffs, ...diffs] });
  }

  #push(item: Item): void {
    this.items = [...this.items, item];
  }
}
