import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./stage.js";

const set = stage();

test("the link opens a page that says what runs", async () => {
  const owner = await set.signIn();
  const { version } = await set.computer.json("status");
  await owner.sees("#version", version);
  assert.match(await owner.text("#uptime"), /^\d+ (s|min)$/);
  assert.match(await owner.text("#disk"), /free of/);
  assert.equal(await owner.page.title(), "Nacre");
  assert.ok(!owner.page.url().includes("token"), "the link is not kept in the address");
  await owner.leave();
});

test("output comes while the command runs, and its exit code at the end", async () => {
  const owner = await set.signIn();
  await owner.run("echo early; echo trouble >&2; until [ -e go ]; do sleep 0.02; done; echo late; exit 3");
  await owner.sees("#output .out", "early");
  await owner.sees("#output .err", "trouble");
  await owner.sees("#result", "Running");
  assert.ok(!(await owner.page.locator("#output .out").allInnerTexts()).join("").includes("late"));
  await set.computer.exec("touch go");
  await owner.sees("#output .out", "late");
  await owner.sees("#result", "Exit code 3");
  await owner.leave();
});

test("a command that writes nothing says so", async () => {
  const owner = await set.signIn();
  await owner.run("true");
  await owner.sees("#result", /Exit code 0 after .* It wrote nothing/);
  await owner.leave();
});

test("everything works with the keyboard alone", async () => {
  const owner = await set.signIn();
  const { keyboard } = owner.page;
  await set.computer.exec("echo hi > a-file.txt");
  await owner.entry("a-file.txt").waitFor();
  const focused = () => owner.page.evaluate("document.activeElement.id || document.activeElement.innerText.trim()");

  await keyboard.type("echo ready; sleep 1000");
  await keyboard.press("Enter");
  await owner.sees("#output .out", "ready");
  await keyboard.press("Escape");
  await owner.sees("#result", "Ended by signal TERM");
  await keyboard.press("ArrowUp");
  assert.equal(await owner.page.inputValue("#command"), "echo ready; sleep 1000");

  const stops = [await focused()];
  while (stops.at(-1) !== "a-file.txt" && stops.length < 50) {
    await keyboard.press("Tab");
    stops.push(await focused());
  }
  assert.deepEqual(stops.slice(0, 5), ["command", "run", "output", "undo", "redo"]);
  assert.ok(stops.some((stop) => stop.startsWith("Undo this")), stops.join(", "));
  assert.deepEqual(stops.slice(-2), ["workspace", "a-file.txt"]);
  const outline = await owner.page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
  assert.equal(outline, "solid", "the focus is visible");
  await owner.leave();
});

test("a command that will not stop is made to", async () => {
  const owner = await set.signIn();
  await owner.run("trap 'echo no' TERM; echo ready; while :; do sleep 0.02; done");
  await owner.sees("#output .out", "ready");
  await owner.page.getByRole("button", { name: "Stop", exact: true }).click();
  await owner.sees("#output .out", "no");
  await owner.page.getByRole("button", { name: "Force stop" }).click();
  await owner.sees("#result", "Ended by signal KILL");
  await owner.page.getByRole("button", { name: "Run", exact: true }).waitFor();
  await owner.leave();
});

test("ten megabytes of output leave the page small, and it says so", async () => {
  const owner = await set.signIn();
  await owner.run("yes 'a line of output that is neither long nor short' | head -c 10000000; echo; echo the end");
  await owner.sees("#result", "Exit code 0");
  await owner.sees("#output", "the end");
  await owner.sees("#left-out", /first [\d,]+ characters are left out/);
  const { length } = await owner.page.locator("#output").evaluate((pane) => pane.textContent);
  assert.ok(length > 100_000 && length < 250_000, `${length} characters are kept`);
  const bottom = await owner.page.locator("#output").evaluate((p) => p.scrollHeight - p.scrollTop - p.clientHeight);
  assert.ok(bottom < 30, "the end is in view");
  await owner.leave();
});

test("output is shown as text, without what only a terminal understands", async () => {
  const owner = await set.signIn();
  await owner.run(String.raw`printf '\033[31mred\033[0m <b>bold</b>\r\nnext \342\202'; printf '\254\n'`);
  await owner.sees("#result", "Exit code 0");
  await owner.sees("#output", "next €");
  assert.equal(await owner.page.locator("#output .out").textContent(), "red <b>bold</b>\nnext €\n");
  await owner.leave();
});
