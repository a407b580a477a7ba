// The app of sockets.test.js: what a socket does with its first message depends on its path. Nothing
// is sent before one, so that no client can miss it.

import { createServer } from "node:http";
import { WebSocketServer } from "ws";

let heardClose;
const lastClose = new Promise((resolve) => { heardClose = resolve; });
const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 16 * 1024 * 1024 });
const server = createServer((_, response) => response.end("app"));

const paths = {
  "/echo": (socket) => socket.on("message", (data, binary) => socket.send(data, { binary })),
  "/ping": (socket) => {
    socket.on("pong", (data) => socket.send(`pong: ${data}`));
    socket.once("message", () => socket.ping("and you?"));
  },
  "/tell-close": (socket) => socket.on("close", (code, reason) => heardClose(`${code} ${reason}`)),
  "/last-close": (socket) => socket.once("message", async () => socket.send(await lastClose)),
  "/close": (socket) => socket.once("message", () => socket.close(4321, "the app says so")),
};

server.on("upgrade", (request, stream, head) => {
  if (request.url === "/refuse") return stream.end("HTTP/1.1 418 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  if (request.url === "/half") {
    stream.write("HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: half\r\n\r\n");
    let heard = head.toString();
    stream.on("data", (data) => { heard += data; });
    return stream.on("end", () => stream.end(`you said: ${heard}`));
  }
  sockets.handleUpgrade(request, stream, head, (socket) => paths[request.url](socket));
});
server.listen(Number(process.env.PORT ?? 4000), "127.0.0.1");
