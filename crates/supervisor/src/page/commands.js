
// Commands

const past = [];
let recall = 0;
/** The command that runs now, or null. */
let current = null;

function run(command) {
  const url = address("supervisor/exec");
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  current = { socket, output: startOutput(command), began: performance.now(), opened: false, asked: 0 };
  socket.addEventListener("open", () => {
    current.opened = true;
    socket.send(JSON.stringify({ type: "start", shell: command }));
  });
  socket.addEventListener("message", ({ data }) => {
    if (typeof data === "string") heard(JSON.parse(data));
    else current?.output.add(new Uint8Array(data));
  });
  socket.addEventListener("close", () => {
    if (current?.socket !== socket) return;
    finish("bad", current.opened ? "The connection was lost; whether the command ended is not known." : "Your computer did not answer. The command was not run.");
  });
  showRunning();
}

function heard(message) {
  if (message.type === "error") finish("bad", `It could not run: ${message.message}.`);
  if (message.type === "exit") finish(message.code === 0 ? "good" : "bad", ending(message));
}

function ending({ code, signal, timed_out: timedOut, out_of_memory: outOfMemory }) {
  const took = performance.now() - current.began;
  const after = `after ${took < 1000 ? `${Math.round(took)} ms` : duration(took)}`;
  if (timedOut) return `Time ran out ${after}.`;
  const memory = outOfMemory ? " The computer ran out of memory." : "";
  if (signal) return `Ended by signal ${signal} ${after}.${memory}`;
  return `Exit code ${code} ${after}.${memory}`;
}

function showRunning() {
  const stop = at("stop");
  stop.textContent = "Stop";
  // Run and Stop take each other's place; whoever stood on Run stands on Stop.
  const onRun = document.activeElement === at("run");
  at("run").hidden = true;
  stop.hidden = false;
  if (onRun) stop.focus();
  tell("", "Running.");
}

function finish(kind, words) {
  if (!current) return;
  const { socket, output } = current;
  const quiet = output.end() === 0 && kind === "good";
  current = null;
  socket.close();
  const onStop = document.activeElement === at("stop");
  at("stop").hidden = true;
  at("run").hidden = false;
  if (onStop) at("command").focus();
  tell(kind, quiet ? `${words} It wrote nothing.` : words);
  // What it made shows at once; no answer is for whoever looks at the whole computer to tell.
  showFolder("again").catch(look);
}

/** Asks the command to end; asked again, it is made to. */
function stop() {
  if (!current) return;
  if (current.socket.readyState !== WebSocket.OPEN) { finish("bad", "Stopped before it began."); return; }
  current.asked += 1;
  current.socket.send(JSON.stringify({ type: "signal", signal: current.asked > 1 ? "KILL" : "TERM" }));
  at("stop").textContent = "Force stop";
  tell("", current.asked > 1 ? "Ending it by force." : "Asked to stop.");
}

function tell(kind, words) {
  at("result").dataset.kind = kind;
  write("result", words);
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const command = at("command").value.trim();
  if (!command || current) return;
  if (past.at(-1) !== command) past.push(command);
  recall = past.length;
  at("command").value = "";
  run(command);
});

at("command").addEventListener("keydown", (event) => {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!step || !past.length) return;
  event.preventDefault();
  recall = Math.min(Math.max(recall + step, 0), past.length);
  at("command").value = past[recall] ?? "";
});

at("example").addEventListener("click", () => {
  at("command").value = at("example").textContent;
  at("command").focus();
});

at("stop").addEventListener("click", stop);
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !at("question").open) stop(); });

// On a phone the keyboard would cover half the page.
if (matchMedia("(hover: hover)").matches) at("command").focus({ preventScroll: true });
showFolder("open");
showHistory();
listen();
look();
