import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { stage } from "./stage.js";

describe("in the page", () => {
  const set = stage();

  test("what a command wrote is undone and redone with a click", async () => {
    const owner = await set.signIn();
    await owner.sees("#history-note", "Nothing has happened yet");
    await owner.run("mkdir made && echo one > made/one.txt && echo two > two.txt");
    await owner.checkpoint("mkdir made").getByText("3 added").waitFor({ state: "attached" });
    await owner.entry("two.txt").waitFor();

    await owner.press("Undo");
    await owner.entry("two.txt").waitFor({ state: "detached" });
    await owner.entry("made").waitFor({ state: "detached" });
    await owner.sees("#history-result", "3 taken away");
    await owner.checkpoint("mkdir made").getByText("undone").waitFor();

    await owner.press("Redo");
    await owner.entry("two.txt").waitFor();
    await owner.sees("#history-result", "3 brought back");
    assert.equal((await set.computer.exec("cat made/one.txt two.txt")).toString(), "one\ntwo\n");
    await owner.checkpoint("mkdir made").getByText("undone").waitFor({ state: "detached" });

    await owner.checkpoint("mkdir made").locator(".unfold").click();
    await owner.sees(".diff", "+one");
    await owner.isAccessible();
    await owner.leave();
  });

  test("what others do shows up by itself, also after the computer was away", async () => {
    const owner = await set.signIn();
    owner.expects(/503|WebSocket/);
    await set.computer.exec("echo theirs > theirs.txt");
    await owner.checkpoint("echo theirs").waitFor();
    await set.computer.nacre("sandbox", "stop", "live");
    await owner.sees("#state", "Not answering");
    await set.computer.nacre("sandbox", "start", "live");
    await set.computer.exec("echo later > later.txt");
    await owner.checkpoint("echo later").waitFor();
    await owner.leave();
  });

  test("a conflict is shown with its names and who it was, and decided by the owner", async () => {
    const owner = await set.signIn();
    await set.computer.exec("echo mine > shared.txt; echo mine > alone.txt");
    await set.computer.exec("echo yours > shared.txt");
    const first = owner.checkpoint("echo mine");
    await first.waitFor();
    const read = async () => (await set.computer.exec("cat shared.txt alone.txt 2>&1 || true")).toString();

    await owner.press("Undo this", first);
    await owner.sees("#question", "1 file was changed since");
    await owner.sees("#question-names", /shared\.txt was changed later by #\d+: \$ .*echo yours/);
    await owner.isAccessible();
    await owner.picture("conflict");
    await owner.page.keyboard.press("Escape");
    await owner.sees("#history-result", "Nothing was changed");
    assert.equal(await read(), "yours\nmine\n");

    await owner.press("Undo this", first);
    await owner.press("Keep the present");
    await owner.sees("#history-result", "1 taken away");
    assert.match(await read(), /^yours\n.*alone\.txt/);
    await owner.press("Redo");
    await owner.sees("#history-result", "1 brought back");

    await owner.press("Undo this", first);
    await owner.press("Overwrite");
    await owner.sees("#history-result", "2 taken away");
    assert.doesNotMatch(await read(), /yours|mine/);
    await owner.leave();
  });

  test("a restore is shown before it is done, with the keyboard alone and on a small screen", async () => {
    await set.computer.exec("rm -rf ./* && echo then > page.txt");
    await set.computer.exec("echo now > page.txt; echo new > extra.txt");
    const owner = await set.signIn({ viewport: { width: 360, height: 740 }, reducedMotion: "reduce" });
    const then = owner.checkpoint("echo then");
    await then.locator(".unfold").focus();
    await owner.page.keyboard.press("Enter");
    await owner.sees(".detail", "page.txt");
    await owner.page.keyboard.press("Tab");
    await owner.page.keyboard.press("Tab");
    const outline = await owner.page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
    assert.equal(outline, "solid", "the focus is visible");
    await owner.page.keyboard.press("Enter");
    await owner.sees("#question", "2 names would become what they were then");
    assert.deepEqual(await owner.page.locator("#question-names .name").allInnerTexts(), ["extra.txt", "page.txt"]);
    assert.equal((await set.computer.exec("cat page.txt")).toString(), "now\n", "nothing is done before it is agreed to");
    await owner.isAccessible();
    await owner.picture("restore");
    const overflow = await owner.page.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert.ok(overflow <= 0, `${overflow} pixels wider than the screen`);
    await owner.page.keyboard.press("Shift+Tab");
    await owner.page.keyboard.press("Enter");
    await owner.sees("#history-result", "1 changed back, 1 taken away");
    assert.equal((await set.computer.exec("cat page.txt; ls")).toString(), "then\npage.txt\n");
    await owner.leave();
  });

  test("a client behind the gateway hears of a write", async (context) => {
    const owner = await set.signIn();
    const ms = await owner.page.evaluate(async () => {
      const url = new URL("/ws", location.href);
      url.protocol = "ws:";
      const socket = new WebSocket(url);
      const heard = (wanted) => new Promise((resolve) => {
        socket.addEventListener("message", ({ data }) => { if (wanted(JSON.parse(data))) resolve(performance.now()); });
      });
      await heard(({ type }) => type === "watching");
      const told = heard(({ changes }) => changes?.some(({ path }) => path === "/workspace/told.txt"));
      const began = performance.now();
      await fetch("/supervisor/files/content?path=told.txt", { method: "PUT", body: "told" });
      return (await told) - began;
    });
    context.diagnostic(`a write was heard of after ${ms.toFixed(1)} ms`);
    assert.ok(ms < 2000, `${ms} ms`);
    await owner.leave();
  });
});

describe("when history has no place to be kept", () => {
  const set = stage();

  test("the page says why, everything else works, and it goes on by itself", async () => {
    const owner = await set.signIn();
    owner.expects(/50\d|WebSocket/);
    await set.computer.nacre("sandbox", "stop", "live");
    const store = join(await set.computer.sandboxFolder(), "history");
    await rm(store, { recursive: true, force: true });
    await writeFile(store, "in the way");
    await set.computer.nacre("sandbox", "start", "live");
    await owner.sees("#state", "Running");
    await owner.run("echo kept > kept.txt");
    await owner.entry("kept.txt").waitFor();
    await owner.sees("#history-note", /Changes are not being recorded: ./);
    await owner.isAccessible();
    await owner.press("Undo");
    await owner.sees("#history-result", /create|exists|directory/i);
    await rm(store);
    await owner.page.locator("#history-note", { hasText: "not being recorded" }).waitFor({ state: "hidden" });
    await owner.run("echo again > kept.txt");
    await owner.checkpoint("echo again").waitFor();
    await owner.leave();
  });
});

const SUMS = "find . -type f | LC_ALL=C sort | xargs sha256sum";

describe("when everything is deleted", () => {
  const set = stage((computer) => computer.exec(`
    mkdir -p src/deep docs && echo '# Read me' > README.md && head -c 300000 /dev/urandom > src/data.bin
    seq 1000 > src/deep/numbers && ln -s README.md docs/link && chmod 750 src/deep && touch src/empty`));

  test("a click brings all of it back", async () => {
    const owner = await set.signIn();
    const state = async () => (await set.computer.exec(`${SUMS}; find . -mindepth 1 -printf '%p %m %l %T@\n' | LC_ALL=C sort`)).toString();
    const before = await state();
    await owner.entry("README.md").waitFor();
    await owner.run("rm -rf /workspace/*");
    await owner.sees("#welcome", "Nothing here yet");
    await owner.checkpoint("rm -rf /workspace/*").waitFor();
    await owner.press("Undo");
    await owner.entry("README.md").waitFor();
    assert.equal(await state(), before);
    await owner.leave();
  });
});

describe("when one command rewrites 5,000 files", () => {
  const files = (text) => `awk 'BEGIN { for (i = 0; i < 5000; i++) { f = "many/f" i; print "${text} " i > f; close(f) } }'`;
  const set = stage((computer) => computer.exec(`mkdir many && ${files("before")} && echo old > other.txt`));

  test("it is undone as one, and what came later is kept", async (context) => {
    const owner = await set.signIn();
    const sum = async () => (await set.computer.exec(`cd many && ${SUMS} | sha256sum`)).toString();
    const before = await sum();
    await owner.run(files("after"));
    await owner.sees("#result", "Exit code 0");
    assert.notEqual(await sum(), before);
    await set.computer.exec("echo new > other.txt; echo later > later.txt");
    await owner.entry("later.txt").waitFor();
    const began = performance.now();
    await owner.press("Undo this", owner.checkpoint("after").filter({ hasText: "5000 changed" }));
    await owner.sees("#history-result", "5,000 changed back");
    context.diagnostic(`undone after ${Math.round(performance.now() - began)} ms`);
    assert.equal(await sum(), before);
    assert.equal((await set.computer.exec("cat other.txt later.txt")).toString(), "new\nlater\n");
    await owner.leave();
  });
});
