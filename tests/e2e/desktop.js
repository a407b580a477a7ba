// The desktop as its owner meets it: a computer that was just set up, a model that answers from a script,
// and somebody in front of the browser.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { Aimock } from "../models/aimock.js";
import { launch, Visitor } from "./browser.js";
import { Computer } from "./computer.js";

const KEY = "sk-desktop-4b1c6f1d0a7e55c9";
const CONFIG = '[agent]\nmodel = "openai/gpt-4o-mini"\n';
/** Vite may have to bundle what the desktop is made of first. */
const STARTS = 90_000;

/** One computer with its desktop for a file of tests. `fixtures` are what the model says. */
export function desk({ fixtures = [], config = "", prepare = async () => {} } = {}) {
  const set = {};
  before(async () => {
    set.model = await Aimock.start({ fixtures: [...fixtures, ...SMALL_TALK], key: KEY });
    set.computer = await Computer.withDesktop(CONFIG + config);
    set.computer.piped(KEY, "provider", "add", "openai", "--url", `${set.model.url}/v1`);
    await until("the desktop is seeded and runs", () => runs(set.computer), STARTS);
    await prepare(set.computer);
    set.browser = await launch();
    set.open = (place = "#/chat", options) => Owner.open(set, place, options);
  });
  after(async () => {
    await set.browser?.close();
    await set.computer?.stop();
    set.model?.stop();
  });
  return set;
}

const USAGE = { prompt_tokens: 120, completion_tokens: 30, total_tokens: 150 };
const SMALL_TALK = [{ match: { userMessage: "hello" }, response: { content: "Hello, I am here.", usage: USAGE } }];

/** A model that calls these tools one after the other, and then says something. It goes on only when what
    came back holds what `results` says, one for each call. */
export function script(words, calls, end, results = []) {
  const id = (index) => `${words.replaceAll(/\W+/g, "-")}-${index}`;
  const say = (index) =>
    index < calls.length
      ? { toolCalls: [{ id: id(index), name: calls[index][0], arguments: calls[index][1] }], usage: USAGE }
      : { content: end, usage: USAGE };
  return [
    { match: { userMessage: words, turnIndex: 0 }, response: say(0) },
    ...calls.map((_, index) => ({ match: { toolCallId: id(index), ...(results[index] && { toolResultContains: results[index] }) }, response: say(index + 1) })),
  ];
}

/** Whether the runtime of live is ready. */
async function runs(computer) {
  const { processes } = await computer.json("process", "list");
  return processes.some((process) => process.name === "runtime" && process.state === "ready");
}

export async function until(what, holds, patience = 20_000) {
  const end = Date.now() + patience;
  let last;
  do {
    try {
      const found = await holds();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (Date.now() < end);
  throw new Error(`never: ${what}${last ? ` (${last.message})` : ""}`);
}

/** Somebody with the desktop open. */
export class Owner extends Visitor {
  static async open(set, place, { mount = "/", ...options } = {}) {
    const owner = await Visitor.arrive(set.browser, options, new Owner());
    owner.set = set;
    // Signing in leads to the chat, which is left again at once.
    owner.expects(/closed before the connection is established/);
    await owner.page.goto(await set.computer.signInLink());
    await owner.page.goto(await set.computer.url(`${mount}${place}`));
    await owner.works();
    return owner;
  }

  /** The desktop is there, from the owner's own source. */
  async works() {
    await this.page.locator('html[data-nacre="source"] nav[aria-label="Desktop"]').waitFor({ timeout: STARTS });
  }

  /** Goes to a page by its name in the rail. */
  async goes(name) {
    await this.page.getByRole("navigation", { name: "Desktop" }).getByRole("link", { name, exact: true }).click();
    await this.page.getByRole("main", { name }).waitFor();
  }

  async says(words) {
    await this.page.getByRole("textbox", { name: /message|say/i }).fill(words);
    // It cannot be sent before what is attached has arrived.
    await this.page.locator("button:enabled", { hasText: "Send" }).waitFor({ state: "attached" });
    await this.page.keyboard.press("Enter");
  }

  /** Waits for words anywhere in the page. */
  async reads(words) {
    await this.page.getByText(words).first().waitFor();
  }

  /** What the guard of the supervisor shows, in whatever page is in front. */
  get guard() {
    return this.page.getByRole("alertdialog");
  }

  /** How long until Undo is offered, by the guard or by the rescue page. */
  async isOfferedUndo() {
    const began = Date.now();
    await this.page.getByRole("button", { name: /^Undo/ }).first().waitFor({ timeout: 10_000 });
    return Date.now() - began;
  }

  /** Puts its line of events, and that of the guard, into the hands of the test. Before the page is loaded. */
  async holdsTheLine() {
    const line = { opened: 0, dropped: 0, cut: false, open: new Set() };
    await this.page.routeWebSocket(/\/ws(\?|$)/, (socket) => {
      if (line.cut) return void socket.close();
      line.opened += 1;
      line.open.add(socket);
      const server = socket.connectToServer();
      socket.onClose(() => (line.open.delete(socket), server.close()));
      server.onClose((code) => (line.open.delete(socket), socket.close({ code })));
    });
    /** As a network that is gone: what is open breaks, and nothing new gets through. */
    line.goesDown = async () => {
      line.cut = true;
      await this.context.setOffline(true);
      for (const socket of [...line.open]) {
        line.dropped += 1;
        line.open.delete(socket);
        await socket.close();
      }
    };
    line.comesBack = async () => {
      line.cut = false;
      line.opened = 0;
      await this.context.setOffline(false);
    };
    return line;
  }

  /** How often this page opens a line of events from now on; the guard has one of its own. */
  countsLines() {
    const count = { opened: 0 };
    this.page.on("websocket", (socket) => { if (/\/ws(\?|$)/.test(new URL(socket.url()).pathname)) count.opened += 1; });
    return count;
  }

  /** Marks this load of the page, to tell whether it was loaded again. */
  mark() {
    return this.page.evaluate("window.sameAsBefore = true");
  }

  isTheSamePage() {
    return this.page.evaluate("window.sameAsBefore === true");
  }

  async colour(variable) {
    return this.page.evaluate((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim(), variable);
  }

  async isWell() {
    await this.isAccessible();
    const wide = await this.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false, "the page is wider than the screen");
  }
}
