"use strict";

const at = (id) => document.getElementById(id);

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

/** Writes only what changed: each write to a live region is announced. */
function write(id, words) {
  if (at(id).textContent !== words) at(id).textContent = words;
}

// The page may be mounted anywhere, with or without a slash at the end, and is also served beside
// what it asks for.
const mount = location.pathname.replace(/\/?$/, "/").replace(/\/supervisor\/$/, "/");
const base = new URL(mount, location.origin);
const address = (path) => new URL(path, base);

/** What an answer that is not a success says, in the shape of every API of Nacre. */
class Refusal extends Error {
  constructor(response, body) {
    super(body?.error?.message ?? `the answer was ${response.status}`);
    this.status = response.status;
    this.kind = body?.error?.kind;
    this.hint = body?.error?.hint;
    this.retryAfter = Number(response.headers.get("retry-after")) || 0;
  }
}

/** How long an answer may take; a paused computer takes connections and says nothing. */
const PATIENCE = 10000;

const ask = (path) => answer(path, PATIENCE);

/** Many files take their time to put back, and whoever asks meanwhile waits for that. */
const LONG_PATIENCE = 600000;

const send = (path, body) => answer(path, LONG_PATIENCE, { method: "POST", body: JSON.stringify(body) });

async function answer(path, patience, request = {}) {
  const signal = AbortSignal.timeout(patience);
  const response = await fetch(address(path), { headers: { accept: "application/json" }, signal, ...request });
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Refusal(response, body);
  return body;
}

function size(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

function duration(ms) {
  const minutes = Math.floor(ms / 60000);
  if (minutes < 1) return `${Math.floor(ms / 1000)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** The first letter of an error's words is small, and its end has no full stop. */
const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

/** For a person: what was said, and where it says so, what to do. */
const inWords = (error) => (error instanceof Refusal ? sentence(error.message) + (error.hint ? ` ${sentence(error.hint)}` : "") : "Your computer did not answer.");
