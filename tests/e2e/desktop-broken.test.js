// Ways to break the page of the desktop, and the ways back.

import { test } from "node:test";
import { healthy, nothingIsWrong, offersUndoInTime, story } from "./broken.js";
import { desk, until } from "./desktop.js";

const set = desk();
const SETTINGS = "shell/src/pages/settings/settings.tsx";
const THROWS = `sed -i 's/export default function \\(\\w*\\)(.*) {/&\\n  throw new Error("drawn badly");/' ${SETTINGS}`;

test("a syntax error", () => story(set, { breaks: "echo 'export const = ;' >> shell/src/app/app.tsx" }));

test("a syntax error, and the page is loaded again", () => story(set, { breaks: "echo 'export const = ;' >> shell/src/app/app.tsx", reload: true }));

test("a page that throws when it is drawn", () => story(set, { breaks: THROWS, says: /drawn badly/ }));

test("a frame that throws when it is drawn", () =>
  story(set, { breaks: `sed -i 's/export function App() {/&\\n  throw new Error("no frame");/' shell/src/app/app.tsx`, says: /no frame/ }));

test("an index.html that is gone", () => story(set, { breaks: "rm shell/index.html" }));

test("an index.html that is gone, and the page is loaded again", () => story(set, { breaks: "rm shell/index.html", reload: true }));

test("the source of the whole desktop is gone", () => story(set, { breaks: "rm -rf shell", reload: true }));

test("a repair without Undo makes the offer go away, and is itself never offered to be undone", async () => {
  const owner = await set.open("#/settings");
  await owner.page.getByRole("heading", { name: "Settings" }).first().waitFor();
  owner.expects(/./);
  await set.computer.exec(`: breaks it; ${THROWS}`);
  await offersUndoInTime(owner);
  await owner.guard.getByText(/Undo takes back: .*breaks it/).waitFor();
  // Everything that the panel ever says from here on.
  await owner.page.evaluate(() => {
    window.said = [];
    const root = [...document.documentElement.children].find((child) => child.shadowRoot)?.shadowRoot;
    new MutationObserver(() => window.said.push(root.textContent)).observe(root, { childList: true, subtree: true, characterData: true });
  });
  await set.computer.exec(`: mends it; sed -i '/drawn badly/d' ${SETTINGS}`);
  await nothingIsWrong(owner);
  await owner.page.getByRole("heading", { name: "Settings" }).first().waitFor();
  const said = await owner.page.evaluate(() => (window.said ?? []).filter((text) => text.includes("mends it")));
  if (said.length > 0) throw new Error(`offered: ${said[0]}`);
  await healthy(set);
  await owner.leave();
});

test("a desktop that is put there anew has hot reload", async () => {
  const owner = await set.open("#/settings");
  owner.expects(/./);
  const pid = async () => (await set.computer.json("process", "list")).processes.find(({ name }) => name === "runtime")?.pid;
  const before = await pid();
  await set.computer.nacre("desktop", "seed", "--replace");
  await until("it is another process", async () => ![undefined, before].includes(await pid()), 60_000);
  await healthy(set);
  await owner.works();
  await until("the page follows", async () => {
    await set.computer.exec("sed -i 's/--radius: [^;]*/--radius: 4px/' shell/src/theme.css");
    return until("the corner is sharper", async () => (await owner.colour("--radius")) === "4px", 5000);
  });
  await owner.leave();
});
