// https before the directory and the PDS, which speak http: what a reverse proxy does on the internet.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");

/** `ports` says who answers for a name; every other name is `otherwise`'s. */
function front({ address, cert, key, ports, otherwise }) {
  const pair = { cert: fs.readFileSync(cert), key: fs.readFileSync(key) };
  const server = https.createServer(pair, (request, response) => {
    const { method, url, headers } = request;
    const port = ports[headers.host] ?? otherwise;
    const onwards = { host: "127.0.0.1", port, method, path: url, headers: { ...headers, "x-forwarded-proto": "https" } };
    const upstream = http.request(onwards, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(response);
    });
    upstream.on("error", () => response.writeHead(502).end());
    request.pipe(upstream);
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: address, port: 443 }, () => resolve(server));
  });
}

module.exports = { front };
