// Loaded before a server that knows no better: it listens on loopback alone, on a port that is free, and
// says which.

import { Server } from "node:net";

const listen = Server.prototype.listen;
Server.prototype.listen = function (...words) {
  const then = words.find((word) => typeof word === "function");
  return listen.call(this, { host: "127.0.0.1", port: 0 }, () => {
    console.log(`listening on 127.0.0.1:${this.address().port}`);
    then?.();
  });
};
