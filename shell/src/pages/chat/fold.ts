// One event after the other makes a conversation what it is. Pure: the same events give the same view.

import { settle, voidOpen, withWords } from "./words";
import type { ConversationEvent, EventOf, ToolContent } from "./events";
import { mark, type Call, type Step, type Turn, type View } from "./view";
import { short } from "../../ui/format";

export function fold(view: View, event: ConversationEvent): View {
  // Whoever comes back may be told again what they know.
  if (event.seq <= view.seq) return view;
  const next = apply(view, event);
  return next === view ? { ...view, seq: event.seq } : { ...next, seq: event.seq };
}

function apply(view: View, event: ConversationEvent): View {
  switch (event.sessionUpdate) {
    case "turn_begins":
      return begin(view, event);
    case "user_message_chunk":
      return hear(view, event);
    case "agent_message_chunk":
      return inTurn(view, (turn) => withWords(turn, "text", event));
    case "agent_thought_chunk":
      return inTurn(view, (turn) => withWords(turn, "thought", event));
    case "reply":
      return meter({ ...inTurn(view, (turn) => settle(turn, event)), replies: view.replies + 1 });
    case "retry":
      return inTurn(view, (turn) => withNote(voidOpen(turn), event, "retry", event.reason));
    case "notice":
      return inTurn(view, (turn) => withNote(turn, event, "notice", event.message));
    case "moved":
      return inTurn(view, (turn) => withNote(turn, event, "notice", `The roles were swapped: this turn goes on in its sandbox, which is ${event.role} now`));
    case "compacted":
      return inTurn(view, (turn) => withNote(turn, event, "compacted", `from about ${short(event.before)} tokens to ${short(event.after)}`));
    case "plan":
      return { ...view, plan: event.entries };
    case "usage_update":
      return meter({ ...view, used: event.used });
    case "cost_update":
      return meter({ ...view, dollars: event.dollars });
    case "tool_call":
      return inTurn(view, (turn) => withStep(turn, announced(event, turn.sandbox)));
    case "tool_call_update":
      return inCall(view, event.toolCallId, (call) => progressed(call, event));
    case "permission_request":
      return { ...inCall(view, event.toolCallId, (call) => ({ ...call, asked: "waiting" })), asking: { call: event.toolCallId, title: event.title, seq: event.seq } };
    case "permission_outcome":
      // The time that the owner took is not the call's.
      return { ...inCall(view, event.toolCallId, (call) => ({ ...call, asked: event.allowed ? "allowed" : "denied", at: event.at })), asking: null };
    case "checkpoints":
      return inCall(view, event.toolCallId, (call) => ({ ...call, sandbox: event.sandbox, checkpoints: [...call.checkpoints, ...event.checkpoints] }));
    case "undone":
      return takeBack(view, event);
    case "ended":
      return end(view, event);
    default:
      // Something that a later version tells of.
      return view;
  }
}

function begin(view: View, event: EventOf<"turn_begins"> | EventOf<"user_message_chunk">): View {
  const about = event.sessionUpdate === "turn_begins" ? event : { turn: view.turns.length + 1, role: "", sandbox: "", mode: "", model: "" };
  const turn: Turn = {
    seq: event.seq,
    last: event.seq,
    at: event.at,
    number: about.turn,
    role: about.role,
    sandbox: about.sandbox,
    mode: about.mode,
    model: about.model,
    text: "",
    steps: [],
    ended: null,
    endedAt: null,
    start: { replies: view.replies, used: view.used, dollars: view.dollars },
    spent: { replies: 0, tokens: 0, dollars: null },
  };
  return { ...view, turns: [...view.turns, turn], working: true };
}

function hear(view: View, event: EventOf<"user_message_chunk">): View {
  const last = view.turns.at(-1);
  // Journals of other agents have no word for the beginning of a turn.
  const begun = last && !last.ended && last.steps.length === 0 ? view : begin(view, event);
  return inTurn({ ...begun, working: true }, (turn) => ({ ...turn, text: turn.text + event.content.text, last: event.seq }));
}

function end(view: View, event: EventOf<"ended">): View {
  const cutOff = (step: Step): Step => {
    if (step.kind === "call" && (step.status === "pending" || step.status === "in_progress")) {
      return { ...step, status: "cut_off", asked: step.asked === "waiting" ? null : step.asked, endedAt: event.at };
    }
    return (step.kind === "text" || step.kind === "thought") && step.open ? { ...step, open: false } : step;
  };
  const ended = inTurn(view, (turn) => ({ ...turn, steps: turn.steps.map(cutOff), ended: event.how, endedAt: event.at, last: event.seq }));
  return { ...ended, working: false, asking: null };
}

function takeBack(view: View, event: EventOf<"undone">): View {
  const undone = new Set(view.undone);
  for (const checkpoint of event.checkpoints) undone.add(mark(event.sandbox, checkpoint));
  return { ...inTurn(view, (turn) => withStep(turn, { kind: "undone", seq: event.seq, at: event.at, paths: event.paths })), undone };
}

function announced(event: EventOf<"tool_call">, sandbox: string): Call {
  return {
    kind: "call",
    seq: event.seq,
    id: event.toolCallId,
    title: event.title,
    tool: event.kind,
    input: event.rawInput,
    locations: event.locations ?? [],
    status: event.status,
    output: "",
    diffs: [],
    outcome: null,
    asked: null,
    at: event.at,
    endedAt: null,
    sandbox,
    checkpoints: [],
  };
}

function progressed(call: Call, event: EventOf<"tool_call_update">): Call {
  const content = event.content ?? [];
  const over = event.status === "completed" || event.status === "failed";
  const text = content.map((piece: ToolContent) => (piece.type === "content" ? piece.content.text : "")).join("");
  const diffs = content.filter((piece) => piece.type === "diff");
  return {
    ...call,
    status: event.status,
    output: call.output + text,
    diffs: diffs.length > 0 ? [...call.diffs, ...diffs] : call.diffs,
    outcome: event.rawOutput ?? call.outcome,
    endedAt: over ? event.at : call.endedAt,
  };
}

/** What the turn that is under way has used: the difference to where the meter stood. */
function meter(view: View): View {
  return inTurn(view, (turn) => {
    if (turn.ended) return turn;
    const { start } = turn;
    const tokens = view.used.input + view.used.output - start.used.input - start.used.output;
    // A fork has the events of another, and a meter of its own that begins at nothing.
    const before = start.dollars !== null && view.dollars !== null && view.dollars >= start.dollars ? start.dollars : 0;
    const dollars = view.dollars === null ? null : view.dollars - before;
    return { ...turn, spent: { replies: view.replies - start.replies, tokens: Math.max(0, tokens), dollars } };
  });
}

const withStep = (turn: Turn, step: Step): Turn => ({ ...turn, steps: [...turn.steps, step] });

function withNote(turn: Turn, event: { seq: number; at: number }, about: "notice" | "retry" | "compacted", text: string): Turn {
  const again = turn.steps.at(-1);
  const steps = about === "retry" && again?.kind === "note" && again.about === "retry" ? turn.steps.slice(0, -1) : turn.steps;
  return withStep({ ...turn, steps }, { kind: "note", about, seq: event.seq, at: event.at, text });
}

function inTurn(view: View, change: (turn: Turn) => Turn): View {
  const last = view.turns.at(-1);
  if (!last) return view;
  const changed = change(last);
  return changed === last ? view : { ...view, turns: view.turns.with(-1, changed) };
}

/** The newest call of that name: names may come again. */
function inCall(view: View, id: string, change: (call: Call) => Call): View {
  return inTurn(view, (turn) => {
    const index = turn.steps.findLastIndex((step) => step.kind === "call" && step.id === id);
    const step = turn.steps[index];
    return step?.kind === "call" ? { ...turn, steps: turn.steps.with(index, change(step)) } : turn;
  });
}
