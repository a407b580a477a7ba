// Making a computer one's own, and getting in when the account's server is gone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Atmosphere, SERVERS_OWN } from "./atmosphere.js";
import { launch, Visitor } from "./browser.js";
import { Computer } from "./computer.js";

const set = {};

before(async () => {
  set.atmosphere = await Atmosphere.start();
  set.computer = await Computer.start("--plc-url", set.atmosphere.plc);
  set.browser = await launch();
});

after(async () => {
  await set.browser?.close();
  await set.computer?.stop();
  await set.atmosphere?.stop();
});

/** Browsers have no passkeys for addresses, and this name is the same computer. */
async function named(path) {
  const url = new URL(await set.computer.url(path));
  url.hostname = "localhost";
  return url.href;
}

test("a computer is claimed with the setup code, once, and hands out recovery codes", async () => {
  const owner = await Visitor.arrive(set.browser, { viewport: { width: 360, height: 740 } });
  owner.expects(SERVERS_OWN);
  owner.expects(/403/);
  const { page } = owner;
  const { alice } = set.atmosphere;
  const { url, code } = await set.computer.json("register");
  await page.goto(url);
  await owner.sees("h1", "Make this computer yours");
  await owner.isAccessible();
  await owner.picture("register-360");
  await page.getByLabel(/Setup code/).fill(code.toLowerCase());
  await page.getByLabel(/handle/).fill(alice.did);
  await page.getByRole("button", { name: "Sign in and make it mine" }).click();
  await page.locator("input[type=password]").fill(alice.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("button", { name: "Authorize", exact: true }).click();
  await owner.sees("main", "This computer is yours now, @alice.test");
  set.codes = await page.locator(".codes li").allInnerTexts();
  assert.equal(set.codes.length, 10);
  await owner.isAccessible();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `nothing is wider than the screen: ${width}`);
  await page.goto(url);
  await owner.sees("h1", "This computer has an owner");
  assert.equal((await set.computer.json("status")).owner, alice.did);
  await owner.leave();
});

test("a passkey is added under a name and lets the owner in there", async () => {
  await set.atmosphere.stop();
  const owner = await Visitor.arrive(set.browser, { colorScheme: "dark" });
  const { page } = owner;
  const devtools = await owner.context.newCDPSession(page);
  await devtools.send("WebAuthn.enable");
  const options = {
    protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true,
    isUserVerified: true, automaticPresenceSimulation: true,
  };
  await devtools.send("WebAuthn.addVirtualAuthenticator", { options });

  await page.goto(await named("/recovery"));
  await page.getByLabel(/One of the ten codes/).fill(set.codes[0]);
  await page.getByRole("button", { name: "Sign in" }).click();
  await owner.sees("h1", "Your access");
  await owner.sees("section", "9 of ten are left");
  await page.getByLabel("What to call it").fill("Laptop");
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await owner.sees("[role=status]", "The passkey is added");
  await owner.sees("li", "Laptop");
  await owner.isAccessible();
  await owner.picture("access-dark");
  await page.getByRole("button", { name: "Sign out" }).click();
  await owner.sees("h1", "Sign in");

  await page.getByRole("link", { name: "Use a passkey" }).click();
  await owner.isAccessible();
  await page.getByRole("button", { name: "Use your passkey" }).click();
  await owner.seesDesktop();
  const { events } = await set.computer.json("audit");
  assert.deepEqual([events[0].event, events[0].detail], ["sign_in", "passkey"]);

  await devtools.send("WebAuthn.disable");
  await page.goto(await named("/auth/me"));
  await page.getByRole("button", { name: "Remove" }).click();
  await owner.sees("[role=status]", "The passkey is removed");
  await owner.leave();
});

test("a wrong recovery code and a used one are refused", async () => {
  const stranger = await Visitor.arrive(set.browser);
  stranger.expects(/403/);
  for (const code of ["00000-00000-00000-00000", set.codes[0]]) {
    await stranger.page.goto(await set.computer.url("/recovery"));
    await stranger.page.getByLabel(/One of the ten codes/).fill(code);
    await stranger.page.getByRole("button", { name: "Sign in" }).click();
    await stranger.sees("[role=alert]", "not a recovery code, or it was used");
  }
  await stranger.isAccessible();
  await stranger.picture("recovery");
  await stranger.leave();
});

test("a token opens what its scope says and nothing after it is revoked", async () => {
  const { token } = await set.computer.json("token", "create", "--name", "test", "--scope", "read", "--expires", "1h");
  const url = await set.computer.url("/admin/sandboxes");
  const ask = (method) => fetch(url, { method, headers: { authorization: `Bearer ${token}` } });
  assert.equal((await ask("GET")).status, 200);
  assert.equal((await ask("POST")).status, 403);
  await set.computer.nacre("token", "revoke", "test");
  assert.equal((await ask("GET")).status, 401);
});
