// A computer with a public address signs its owner in as a client that has a document and a key of its
// own, at a PDS that fetches both and holds it to them. Everybody is on an internet of the test's own, so
// neither side has its guard against private addresses switched off.

import assert from "node:assert/strict";
import { generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { Atmosphere } from "./atmosphere.js";
import { launch, Visitor } from "./browser.js";
import { Computer } from "./computer.js";
import { Internet } from "./internet.js";

/** Addresses that belong to others, and here to nobody. */
const [OURS, THEIRS] = ["11.22.33.1", "11.22.33.2"];
const CLIENT = "https://computer.internal/auth/client-metadata.json";
const set = {};

before(async () => {
  const theirs = ["pds.internal", "plc.internal", "alice.test", "mallory.test"];
  set.internet = await Internet.start({ [OURS]: ["computer.internal"], [THEIRS]: theirs });
  const { cert, key, authority } = set.internet;
  set.log = set.internet.file("pds.log");
  const place = { address: THEIRS, cert, key, pds: "pds.internal", plc: "plc.internal" };
  set.atmosphere = await Atmosphere.startOn(set.internet, place, set.log);
  const { alice, plc } = set.atmosphere;
  set.computer = await Computer.startOn(
    set.internet, "--listen", `${OURS}:443`, "--tls-cert", cert, "--tls-key", key,
    "--public-url", "https://computer.internal", "--owner-did", alice.did, "--plc-url", plc, "--account-ca", authority,
  );
  set.browser = await launch(set.internet);
});

after(async () => {
  await set.browser?.close();
  await set.computer?.stop();
  await set.atmosphere?.stop();
  await set.internet?.stop();
});

async function visitor(path = "/") {
  const someone = await Visitor.arrive(set.browser, { ignoreHTTPSErrors: true });
  await someone.page.goto(`https://computer.internal${path}`);
  assert.equal(new URL(someone.page.url()).pathname, "/login");
  return someone;
}

/** What the PDS wrote down that it fetched, and how it answered what was asked of it. */
async function seenByTheServer() {
  const lines = (await readFile(set.log, "utf8")).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return {
    fetched: lines.filter(({ msg, uri }) => msg === "fetch" && uri).map(({ uri }) => uri),
    answered: lines.filter(({ req, res }) => req && res).map(({ req, res }) => `${req.method} ${req.url} ${res.statusCode}`),
  };
}

/** From within the network: the status and the JSON of a form that is sent to the PDS. */
async function ask(path, form) {
  const script = `
    const [url, body] = process.argv.slice(1);
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    fetch(url, { method: "POST", body, headers }).then(async (answer) =>
      console.log(JSON.stringify({ status: answer.status, ...(await answer.json()) })));`;
  const url = `${set.atmosphere.pds}${path}`;
  return JSON.parse(await set.internet.run(process.execPath, "-e", script, url, new URLSearchParams(form).toString()));
}

test("the owner signs in with a signed request and lands where they were going", async () => {
  const owner = await visitor("/supervisor/?from=here");
  await owner.sees("button", "Sign in as @alice.test");
  await set.atmosphere.signIn(owner, set.atmosphere.alice);
  await owner.sees("body", "computer.internal");
  await owner.picture("discoverable-consent");
  await set.atmosphere.authorize(owner);
  await owner.sees("#state", "Running");
  assert.equal(owner.page.url(), "https://computer.internal/supervisor/?from=here");
  const { sessions } = await set.computer.json("sessions", "list");
  assert.deepEqual(sessions.map(({ method }) => method), ["account"]);
  const session = (await owner.context.cookies()).find(({ name }) => name === "__Host-nacre_session");
  assert.deepEqual([session.domain, session.secure, session.httpOnly], ["computer.internal", true, true]);
  await owner.leave();

  const { fetched, answered } = await seenByTheServer();
  assert.ok(fetched.includes(CLIENT), `the PDS read who asks: ${fetched}`);
  assert.ok(fetched.includes("https://computer.internal/auth/jwks.json"), `and with which key: ${fetched}`);
  for (const call of ["POST /oauth/par 201", "POST /oauth/token 200", "POST /oauth/revoke 200"]) {
    assert.ok(answered.includes(call), `${call}: ${answered.filter((line) => line.includes("/oauth/"))}`);
  }
});

test("whoever cannot sign as this computer is not taken for it", async () => {
  const now = Math.floor(Date.now() / 1000);
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const { keys } = JSON.parse(await set.internet.run(
    process.execPath, "-e",
    "fetch('https://computer.internal/auth/jwks.json').then(async (answer) => console.log(await answer.text()))",
  ));
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const claims = { iss: CLIENT, sub: CLIENT, aud: set.atmosphere.pds, iat: now, exp: now + 60, jti: randomUUID() };
  const signed = `${encode({ alg: "ES256", kid: keys[0].kid })}.${encode(claims)}`;
  const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
  const form = {
    client_id: CLIENT, response_type: "code", scope: "atproto", state: "x", code_challenge_method: "S256",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", redirect_uri: "https://computer.internal/auth/callback",
  };
  const assertion = {
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: `${signed}.${signature.toString("base64url")}`,
  };
  const unsigned = await ask("/oauth/par", form);
  assert.deepEqual([unsigned.status, unsigned.error], [400, "invalid_request"]);
  assert.match(unsigned.error_description, /"private_key_jwt" required/);
  const forged = await ask("/oauth/par", { ...form, ...assertion });
  assert.equal(forged.error, "invalid_client", JSON.stringify(forged));
  assert.match(forged.error_description, /signature/, JSON.stringify(forged));
});

test("another account of the same server is refused and named", async () => {
  const mallory = await visitor();
  mallory.expects(/403/);
  const before = (await set.computer.json("sessions", "list")).sessions.length;
  await set.atmosphere.signIn(mallory, set.atmosphere.mallory);
  await set.atmosphere.authorize(mallory);
  await mallory.sees("h1", "Not your computer");
  await mallory.sees("main", "@mallory.test");
  assert.equal((await set.computer.json("sessions", "list")).sessions.length, before);
  const [event] = (await set.computer.json("audit")).events;
  assert.deepEqual([event.event, event.who], ["sign_in_refused", set.atmosphere.mallory.did]);
  await mallory.leave();
});
