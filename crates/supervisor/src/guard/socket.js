
// What happens, from the supervisor.

const SHORTEST = 500;
const LONGEST = 15000;
/** It beats every 15 seconds. One that says nothing for so long is gone, whatever the browser believes. */
const SILENCE = 45000;
const socket = { open: null, timer: null, quiet: null, wait: SHORTEST, run: null, seen: 0, moved: false, over: false };

function listen() {
  clearTimeout(socket.timer);
  if (socket.open || socket.over) return;
  const url = address("ws");
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  if (socket.run) url.search = new URLSearchParams({ after: socket.seen, run: socket.run });
  const opened = socket.open = new WebSocket(url);
  const heard = () => {
    clearTimeout(socket.quiet);
    socket.quiet = setTimeout(() => { ended({}); opened.close(); }, SILENCE);
  };
  const ended = ({ code }) => {
    if (socket.open !== opened) return;
    socket.open = null;
    clearTimeout(socket.quiet);
    // The session ended: the page will say so.
    if (code === 4002) { socket.over = true; return; }
    // Another sandbox has this address now: there at once, but once.
    if (code === 4001 && !socket.moved) { socket.moved = true; socket.run = null; listen(); return; }
    if (document.hidden) return;
    socket.timer = setTimeout(listen, socket.wait * (1 + Math.random()));
    socket.wait = Math.min(socket.wait * 2, LONGEST);
  };
  opened.addEventListener("message", ({ data }) => {
    if (socket.open !== opened) return;
    heard();
    try { happened(JSON.parse(data)); } catch { /* Not for us. */ }
  });
  opened.addEventListener("close", ended);
  heard();
}

function happened(event) {
  if (event.type === "hello") {
    if (socket.run !== event.run) { lookAtProcesses().catch(() => {}); soon(0); }
    socket.run = event.run;
    socket.wait = SHORTEST;
    setTimeout(() => { socket.moved = false; }, 5000);
  }
  socket.seen = event.seq;
  switch (event.type) {
    case "files":
      if (event.changes.some(({ path, from }) => [path, from].some((name) => typeof name === "string" && `${name}/`.startsWith(`${directory}/`)))) filesChanged();
      break;
    case "process":
      if (!/^runtime(@|$)/.test(event.process.name)) break;
      if (event.process.name === instance) know(event.process);
      soon(hung ? 0 : 150);
      break;
    case "config": ofConfig(event.error); soon(); break;
    case "gap": lookAtProcesses().catch(() => {}); soon(); break;
    case "files_lost": case "restored": filesChanged(); break;
    case "process_gone": soon(); break;
    case "checkpoint": if (panel && !busy) nameUndo(); break;
  }
}
