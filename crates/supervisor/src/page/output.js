
// Output: shown once per frame however fast it comes, and only the latest part of it kept.

/** Characters kept on the page. */
const KEPT = 200000;
/** Lines live in blocks of about this many characters: a browser lays out only the last one anew. */
const BLOCK = 8000;
/** Past this, reading every line aloud helps nobody. */
const SPOKEN = 2000;
const STREAMS = { 1: "out", 2: "err" };

function startOutput(command) {
  const pane = at("output");
  const streams = { out: cleaner(), err: cleaner() };
  let waiting = [];
  let waitingLength = 0;
  let written = 0;
  let leftOut = 0;
  let kept = 0;
  let block = null;
  let scheduled = false;

  pane.replaceChildren(element("div", `$ ${command}`, "said"));
  pane.setAttribute("aria-live", "polite");
  at("left-out").hidden = true;

  function put({ stream, text }) {
    while (text) {
      if (!block) { block = element("div"); block.held = 0; pane.append(block); }
      const line = text.indexOf("\n", Math.max(BLOCK - block.held - 1, 0));
      const end = Math.min(line < 0 ? text.length : line + 1, 4 * BLOCK - block.held);
      extend(block, stream, text.slice(0, end));
      block.held += end;
      kept += end;
      const full = block.held >= 4 * BLOCK || (block.held >= BLOCK && text[end - 1] === "\n");
      text = text.slice(end);
      if (full) block = null;
    }
  }

  function show() {
    scheduled = false;
    const atEnd = pane.scrollHeight - pane.scrollTop - pane.clientHeight < 24;
    waiting.forEach(put);
    waiting = [];
    waitingLength = 0;
    while (kept > KEPT && pane.children[1] !== block) {
      kept -= pane.children[1].held;
      leftOut += pane.children[1].held;
      pane.children[1].remove();
    }
    if (written > SPOKEN) pane.setAttribute("aria-live", "off");
    at("left-out").hidden = leftOut === 0;
    if (leftOut) write("left-out", `Only the end is kept here: the first ${leftOut.toLocaleString()} characters are left out.`);
    if (atEnd) pane.scrollTop = pane.scrollHeight;
  }

  function add(stream, text) {
    if (!text) return;
    waiting.push({ stream, text });
    waitingLength += text.length;
    written += text.length;
    // A page in the background draws no frames.
    while (waitingLength > KEPT && waiting.length > 1) {
      const { length } = waiting.shift().text;
      waitingLength -= length;
      leftOut += length;
    }
    if (!scheduled) { scheduled = true; requestAnimationFrame(show); }
  }

  return {
    add(bytes) {
      const stream = STREAMS[bytes[0]] ?? "out";
      add(stream, streams[stream](bytes.subarray(1), { stream: true }));
    },
    end() {
      for (const stream of ["out", "err"]) add(stream, streams[stream](new Uint8Array(), {}));
      return written;
    },
  };
}

function extend(block, stream, text) {
  const last = block.lastChild;
  if (last?.className === stream) { last.firstChild.appendData(text); return; }
  block.append(element("span", text, stream));
}

/** Bytes to text, without the sequences that only a terminal understands. */
function cleaner() {
  const decoder = new TextDecoder();
  let rest = "";
  return (bytes, options) => {
    const text = rest + decoder.decode(bytes, options);
    // What may go on in the next piece waits for it.
    const cut = options.stream ? text.search(/(\x1b[^\n]{0,64}|\r)$/) : -1;
    rest = cut < 0 || isWhole(text.slice(cut)) ? "" : text.slice(cut);
    return plain(text.slice(0, text.length - rest.length));
  };
}

const SEQUENCE = /\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()*+][0-~]|[@-Z\\^_=>78])/g;
const isWhole = (text) => text !== "\r" && text.replace(SEQUENCE, "").indexOf("\x1b") < 0;
const plain = (text) => text.replace(SEQUENCE, "").replace(/\r\n?/g, "\n");
