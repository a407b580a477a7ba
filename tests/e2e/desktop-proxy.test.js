// The desktop behind somebody's own nginx, at the address that PUBLIC_URL names.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { desk, until } from "./desktop.js";
import { freePort, Proxy } from "./proxy.js";

const [port, upstream] = [await freePort(), await freePort()];
const address = `https://localhost:${port}`;
let proxy;
before(async () => { proxy = await Proxy.start(port, upstream); });
const set = desk({
  config: `[gateway]\nlisten = "127.0.0.1:${upstream}"\npublic_url = "${address}"\ntrusted_proxies = ["127.0.0.1"]\n`,
  prepare: (computer) => computer.nacre("dev", "create"),
});
after(() => proxy?.stop());

for (const mount of ["/", "/dev/"]) {
  test(`${mount} is a desktop with hot reload and a terminal, over HTTP/2 and WSS`, async () => {
    const owner = await set.open("#/terminal", { mount, ignoreHTTPSErrors: true });
    assert.equal(new URL(owner.page.url()).origin, address);
    assert.equal(await owner.page.evaluate(() => performance.getEntriesByType("navigation")[0].nextHopProtocol), "h2");
    await owner.mark();

    await owner.page.locator(".xterm-screen").first().click();
    await owner.page.keyboard.type("sed -i 's/--radius: [^;]*/--radius: 5px/' /workspace/shell/src/theme.css; echo $((6 * 7)) is it\n");
    await until("the terminal answers", async () => (await owner.page.locator(".xterm-rows").first().innerText()).includes("42 is it"));
    await until("the corner is sharper", async () => (await owner.colour("--radius")) === "5px");
    assert.equal(await owner.isTheSamePage(), true);
    await owner.leave();
  });
}
