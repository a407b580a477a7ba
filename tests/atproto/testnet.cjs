// A directory (PLC) and a personal data server (PDS), the real ones, with two accounts.
// node testnet.cjs PLC_PORT PDS_PORT prints one line of JSON when it is ready; SIGTERM ends it.
//
// They are on loopback and take their settings for development, unless a third argument says where they
// are on an internet of the test's own: {"address", "cert", "key", "pds", "plc"}, the last two being
// names. Then they are reached over https alone, and the PDS guards itself as it does in the world.
"use strict";

const net = require("node:net");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

// Both servers listen on every interface unless told otherwise, and cannot be told.
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  const bare = (typeof port === "number" || typeof port === "string") && typeof rest[0] !== "string";
  return bare ? listen.call(this, { port: Number(port), host: "127.0.0.1" }, ...rest) : listen.call(this, port, ...rest);
};

const { PlcServer, Database } = require("@did-plc/server");
const { PDS, envToCfg, envToSecrets } = require("@atproto/pds");
const { Secp256k1Keypair } = require("@atproto/crypto");

const { front } = require("./front.cjs");

const [plcPort, pdsPort] = process.argv.slice(2, 4).map(Number);
const internet = process.argv[4] && JSON.parse(process.argv[4]);
// Names such as "owner" are reserved.
const NAMES = ["alice", "mallory"];

function settings(folder, rotationKey, recoveryKey) {
  return {
    devMode: !internet,
    disableSsrfProtection: !internet,
    hostname: internet ? internet.pds : "localhost",
    port: pdsPort,
    dataDirectory: folder,
    blobstoreDiskLocation: path.join(folder, "blobs"),
    didPlcUrl: `http://localhost:${plcPort}`,
    plcRotationKeyK256PrivateKeyHex: rotationKey,
    recoveryDidKey: recoveryKey,
    adminPassword: "admin-pass",
    jwtSecret: "jwt-secret",
    serviceHandleDomains: [".test"],
    bskyAppViewUrl: "https://appview.invalid",
    bskyAppViewDid: "did:example:invalid",
    modServiceUrl: "https://moderator.invalid",
    modServiceDid: "did:example:invalid",
    inviteRequired: false,
    crawlers: [],
  };
}

async function account(pds, name) {
  const password = `${name}-pass`;
  const answer = await fetch(`${pds}/xrpc/com.atproto.server.createAccount`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ handle: `${name}.test`, email: `${name}@mail.test`, password }),
  });
  const { handle, did, ...rest } = await answer.json();
  if (!answer.ok) throw new Error(JSON.stringify(rest));
  return { handle, did, password };
}

async function main() {
  const plc = PlcServer.create({ db: Database.mock(), port: plcPort });
  await plc.start();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "nacre-atproto-"));
  const rotation = await Secp256k1Keypair.create({ exportable: true });
  const rotationKey = Buffer.from(await rotation.export()).toString("hex");
  const env = settings(folder, rotationKey, (await Secp256k1Keypair.create()).did());
  const server = await PDS.create(envToCfg(env), envToSecrets(env));
  await server.start();
  const local = { plc: `http://localhost:${plcPort}`, pds: `http://localhost:${pdsPort}` };
  const accounts = [];
  for (const name of NAMES) accounts.push(await account(local.pds, name));
  if (internet) await front({ ...internet, ports: { [internet.plc]: plcPort }, otherwise: pdsPort });
  const reached = internet ? { plc: `https://${internet.plc}`, pds: `https://${internet.pds}` } : local;
  console.log(JSON.stringify({ ...reached, accounts }));
  const stop = async () => {
    await server.destroy();
    await plc.destroy();
    fs.rmSync(folder, { recursive: true, force: true });
    process.exit(0);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
