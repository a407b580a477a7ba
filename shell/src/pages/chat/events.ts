// What happens in a conversation, as crates/agent/src/events.rs writes it down.

export interface Usage {
  input: number;
  /** Of `input`, what the service had kept. */
  cached?: number;
  output: number;
}

export interface Content {
  type: "text";
  text: string;
}

export interface DiffContent {
  type: "diff";
  path: string;
  oldText: string | null;
  newText: string;
}

export type ToolContent = { type: "content"; content: Content } | DiffContent;
export type ToolKind = "read" | "edit" | "search" | "execute" | "think" | "fetch" | "other";
export type ToolStatus = "pending" | "in_progress" | "completed" | "failed";

export interface Location {
  path: string;
  line?: number;
}

/** What the model was told of a call. */
export interface Outcome {
  call: string;
  name: string;
  text: string;
  failed: boolean;
}

export interface PlanEntry {
  content: string;
  status: "pending" | "in_progress" | "completed";
  priority: "high" | "medium" | "low";
}

/** How a turn ended; some ways come with a reason. */
export interface Ended {
  reason: "done" | "max_steps" | "time_out" | "budget" | "model" | "invalid" | "cancelled" | "interrupted";
  message?: string;
}

export type Update =
  | { sessionUpdate: "user_message_chunk"; content: Content }
  | { sessionUpdate: "agent_message_chunk"; content: Content }
  | { sessionUpdate: "agent_thought_chunk"; content: Content }
  | { sessionUpdate: "tool_call"; toolCallId: string; title: string; kind: ToolKind; status: ToolStatus; rawInput: unknown; locations?: Location[] }
  | { sessionUpdate: "tool_call_update"; toolCallId: string; status: ToolStatus; content?: ToolContent[]; rawOutput?: Outcome }
  | { sessionUpdate: "plan"; entries: PlanEntry[] }
  | { sessionUpdate: "usage_update"; used: Usage }
  | { sessionUpdate: "permission_request"; toolCallId: string; title: string }
  | { sessionUpdate: "permission_outcome"; toolCallId: string; allowed: boolean }
  | { sessionUpdate: "retry"; reason: string }
  | { sessionUpdate: "notice"; message: string }
  | { sessionUpdate: "moved"; role: string; sandbox: string }
  | { sessionUpdate: "compacted"; before: number; after: number; used: Usage }
  | { sessionUpdate: "reply"; reply: { text?: string } }
  | { sessionUpdate: "ended"; how: Ended }
  | { sessionUpdate: "turn_begins"; turn: number; role: string; sandbox: string; mode: string; model: string }
  | { sessionUpdate: "checkpoints"; toolCallId: string; sandbox: string; checkpoints: number[] }
  | { sessionUpdate: "undone"; sandbox: string; checkpoints: number[]; paths: string[] }
  | { sessionUpdate: "cost_update"; dollars: number };

/** Numbered from 1 without a gap; `at` is in milliseconds since 1970. */
export type ConversationEvent = { seq: number; at: number } & Update;
/** The event of one kind. */
export type EventOf<Kind extends Update["sessionUpdate"]> = Extract<ConversationEvent, { sessionUpdate: Kind }>;
