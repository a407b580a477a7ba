// Runs in the sandbox: a page with a script, events and a socket, which tells how it was asked.

import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const PAGE = (request) => `<!doctype html><html lang="en"><title>A port</title><link rel="icon" href="data:,">
<p id="prefix">${request.headers["x-forwarded-prefix"] ?? "none"}</p>
<p id="cookies">${request.headers.cookie ?? "none"}</p>
<p id="script"></p><p id="events"></p><p id="socket"></p><a href="old">moved</a>
<script src="app.js"></script></html>`;

const SCRIPT = `
const put = (id, text) => { document.getElementById(id).textContent += text + " "; };
put("script", "loaded");
new EventSource("events").onmessage = ({ data }) => put("events", data);
const socket = new WebSocket(new URL("echo", location.href.replace("http", "ws")));
socket.onopen = () => socket.send("there and back");
socket.onmessage = ({ data }) => put("socket", data);`;

const server = createServer((request, response) => {
  switch (new URL(request.url, "http://a").pathname) {
    case "/":
      return response.setHeader("content-type", "text/html").end(PAGE(request));
    case "/app.js":
      return response.setHeader("content-type", "text/javascript").end(SCRIPT);
    case "/favicon.ico":
      return response.writeHead(204).end();
    case "/old":
      return response.writeHead(302, { location: "/?moved" }).end();
    case "/cookie":
      response.setHeader("set-cookie", ["sid=1; Path=/; Domain=pc.localhost", "nacre_port=forged; Path=/"]);
      return response.end("set");
    case "/events":
      response.writeHead(200, { "content-type": "text/event-stream" });
      return response.write("data: first\n\n", () => response.write("data: second\n\n"));
    default:
      return response.writeHead(404).end();
  }
});
const sockets = new WebSocketServer({ server, path: "/echo" });
sockets.on("connection", (socket) => socket.on("message", (data) => socket.send(String(data))));
server.listen(Number(process.argv[2]), "127.0.0.1");
