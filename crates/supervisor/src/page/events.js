
// What happens, as it happens: `/ws`. A connection that ends is made again, later and later, and goes
// on where it was.

const SHORTEST_PAUSE = 500;
const LONGEST_PAUSE = 15000;
const events = { socket: null, timer: null, pause: SHORTEST_PAUSE, run: null, seen: 0 };

function listen() {
  clearTimeout(events.timer);
  if (events.socket) return;
  const url = address("ws");
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  if (events.run) url.search = new URLSearchParams({ after: events.seen, run: events.run });
  const socket = new WebSocket(url);
  events.socket = socket;
  socket.addEventListener("message", ({ data }) => happened(JSON.parse(data)));
  socket.addEventListener("close", () => {
    events.socket = null;
    // By chance up to twice as long: not all pages come back at the same moment.
    events.timer = setTimeout(listen, events.pause * (1 + Math.random()));
    events.pause = Math.min(events.pause * 2, LONGEST_PAUSE);
  });
}

const isListening = () => events.socket?.readyState === WebSocket.OPEN;

function happened(message) {
  if (message.type === "hello") {
    events.pause = SHORTEST_PAUSE;
    // What was missed still comes, or a gap.
    if (events.run) { events.run = message.run; return; }
    events.run = message.run;
    showHistory();
  }
  events.seen = message.seq;
  if (message.type === "gap") showHistory();
  if (message.type === "checkpoint") recorded(message.checkpoint);
  if (message.type === "restored") tellProcesses(message.processes);
}

addEventListener("online", listen);
at("again").addEventListener("click", listen);
document.addEventListener("visibilitychange", () => { if (!document.hidden) listen(); });
