// Somebody in front of a browser. Whatever the browser complains about fails the test.

import assert from "node:assert/strict";
import { access, constants, mkdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import axe from "axe-core";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const PICTURES = process.env.NACRE_E2E_PICTURES ?? new URL("../../target/e2e", import.meta.url).pathname;
const PATIENCE = 20000;

/** On an internet of the test's own, when there is one. */
export async function launch(internet) {
  const program = await find("chromium");
  const executablePath = internet ? await internet.wrap(program) : program;
  return chromium.launch({ executablePath, args: FLAGS });
}

async function find(program) {
  for (const folder of process.env.PATH.split(delimiter)) {
    const path = join(folder, program);
    if (await access(path, constants.X_OK).then(() => true, () => false)) return path;
  }
  throw new Error(`${program} is not in PATH; on Debian: apt-get install ${program}`);
}

export class Visitor {
  #complaints = [];
  #expected = [];

  /** A browser profile of its own. `options` are Playwright's: viewport, colorScheme, ... */
  static async arrive(browser, options = {}, visitor = new Visitor()) {
    visitor.context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    visitor.context.setDefaultTimeout(PATIENCE);
    visitor.page = await visitor.context.newPage();
    visitor.page.on("pageerror", (error) => visitor.#complaints.push(error.message));
    visitor.page.on("console", (message) => {
      // With the path alone: a port may look like the status that a test expects.
      const path = message.location().url.replace(/^\w+:\/\/[^/]*/, "");
      if (message.type() === "error" || message.type() === "warning") visitor.#complaints.push(`${message.text()} ${path}`);
    });
    return visitor;
  }

  /** On the supervisor's own page: asked for first, so that signing in leads there. */
  static async signIn(browser, computer, options) {
    const visitor = await Visitor.arrive(browser, options);
    await visitor.page.goto(await computer.url("/supervisor/"));
    await visitor.page.goto(await computer.signInLink());
    await visitor.sees("#state", "Running");
    return visitor;
  }

  /** This complaint of the browser is what the test is about. */
  expects(pattern) {
    this.#expected.push(pattern);
  }

  /** Waits until the text is there. */
  async sees(selector, text) {
    await this.page.locator(selector).filter({ hasText: text }).first().waitFor();
  }

  /** Waits for the desktop, whichever copy of it. */
  async seesDesktop() {
    // Who goes on while it loads cuts its socket off.
    this.expects(/WebSocket/);
    await this.page.locator("html[data-nacre]").waitFor();
  }

  /** A row of the file list, by its whole name. */
  entry(name) {
    const whole = new RegExp(`^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}( → |$)`);
    return this.page.locator("#files .entry").filter({ has: this.page.locator(".name", { hasText: whole }) });
  }

  /** A checkpoint in the history, by what stands in it. */
  checkpoint(text) {
    return this.page.locator("#checkpoints > li").filter({ hasText: text });
  }

  /** Presses a button of the history: of one checkpoint, or of all. */
  async press(name, within = this.page) {
    await within.getByRole("button", { name: new RegExp(`^${name}( \\(#\\d+\\))?$`) }).click();
  }

  async run(command) {
    await this.page.getByLabel("Shell command").fill(command);
    await this.page.getByRole("button", { name: "Run", exact: true }).click();
  }

  text(selector) {
    return this.page.locator(selector).innerText();
  }

  /** Kept in target/e2e, to look at. */
  async picture(name) {
    await mkdir(PICTURES, { recursive: true });
    await this.page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
  }

  /** Fails on what would keep somebody with a screen reader or weak sight out. */
  async isAccessible({ except = [] } = {}) {
    await this.page.evaluate(axe.source);
    const { violations } = await this.page.evaluate("axe.run()");
    const severe = violations.filter(({ id, impact }) => !except.includes(id) && (impact === "serious" || impact === "critical"));
    const found = severe.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(" ")}`);
    assert.deepEqual(found, []);
  }

  async leave() {
    // On a busy machine, Chromium now and then never says that a context is closed. Nothing that a test looks at
    // comes after that, and the whole browser ends with the file.
    const late = setTimeout(PATIENCE, "late", { ref: false });
    if ((await Promise.race([this.context.close(), late])) === "late") console.log("the browser did not say that its pages are closed");
    const unexpected = this.#complaints.filter((text) => !this.#expected.some((pattern) => pattern.test(text)));
    assert.deepEqual(unexpected, [], "the browser complained");
  }
}
