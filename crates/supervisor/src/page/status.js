
// Status, and whether the computer answers at all.

const EVERY = 3000;
const LONGEST_WAIT = 15000;
let failures = 0;
let timer = null;
let asking = false;

const range = ({ oldest, newest }) => (oldest === newest ? `${newest}` : `${oldest} to ${newest}`);

async function showStatus() {
  const [health, version, stats] = await Promise.all(
    ["supervisor/health", "supervisor/version", "supervisor/stats"].map(ask));
  const facts = {
    uptime: duration(health.uptime_ms),
    faults: `${health.contained_panics}`,
    version: version.version,
    protocol: range(version.protocol),
    memory: size(stats.rss_bytes),
    processes: `${stats.processes}`,
    commands: `${stats.commands_running}`,
    disk: `${size(stats.disk_free_bytes)} free of ${size(stats.disk_total_bytes)}`,
  };
  showFacts(facts);
  at("faults-fact").hidden = health.contained_panics === 0;
  at("disk-meter").value = stats.disk_total_bytes ? 1 - stats.disk_free_bytes / stats.disk_total_bytes : 0;
  if (health.status === "ok") setState("ok", "Running");
  else setState("waiting", "Degraded");
}

function showFacts(facts) {
  for (const [id, value] of Object.entries(facts)) write(id, value);
}

/** What was true a while ago is not shown as if it still were. */
function forgetFacts() {
  for (const fact of document.querySelectorAll(".facts dd:not(:has(*)), #disk")) fact.textContent = "–";
  at("disk-meter").value = 0;
}

function setState(state, words) {
  at("state").dataset.state = state;
  write("state", words);
}

/** Looks every few seconds; while there is no answer, less and less often. */
async function look() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  let wait = EVERY;
  try {
    await showStatus();
    await showFolder("again");
    showHistoryState();
    failures = 0;
    at("trouble").hidden = true;
  } catch (error) {
    failures += 1;
    wait = Math.max(Math.min(500 * 2 ** failures, LONGEST_WAIT), (error.retryAfter ?? 0) * 1000);
    showTrouble(error);
  }
  asking = false;
  // A page nobody sees asks nothing; it looks again when it is shown.
  if (!document.hidden) timer = setTimeout(look, wait);
}

function showTrouble(error) {
  const signedOut = error.status === 401;
  setState("lost", signedOut ? "Signed out" : "Not answering");
  write("trouble-title", signedOut ? "You are signed out" : "Your computer is not answering");
  write("trouble-words", signedOut ? "Get a fresh link in a terminal and open it in this browser." : troubleWords(error));
  const hint = signedOut ? "nacre login" : error.hint;
  at("trouble-hint").hidden = !hint;
  write("trouble-hint", hint ?? "");
  at("trouble").hidden = false;
  forgetFacts();
}

function troubleWords(error) {
  const rest = "Your files are safe. This page comes back by itself.";
  if (!(error instanceof Refusal)) return `The connection does not work. ${rest}`;
  return `${sentence(error.message)} ${rest}`;
}

at("again").addEventListener("click", look);
addEventListener("online", look);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
