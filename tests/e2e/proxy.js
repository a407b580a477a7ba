// nginx with TLS in front of a computer, as people put it there.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** A port of loopback that nobody has at this moment. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A certificate for localhost that no browser knows. */
export async function certificate(folder) {
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(folder, name));
  await promisify(execFile)("openssl", [
    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
    "-keyout", key, "-out", cert,
  ]);
  return { cert, key };
}

const config = ({ folder, cert, key, port, upstream }) => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join("\n  ")}
  map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
    client_max_body_size 0;
    location / {
      proxy_pass http://127.0.0.1:${upstream};
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 1h;
      proxy_set_header Host $host:$server_port;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
    }
  }
}
`;

export class Proxy {
  /** At `https://localhost:PORT`, for what listens on the port `upstream`. */
  static async start(port, upstream) {
    const proxy = new Proxy();
    proxy.folder = await mkdtemp(join(tmpdir(), "nacre-nginx-"));
    const file = join(proxy.folder, "nginx.conf");
    await writeFile(file, config({ folder: proxy.folder, ...(await certificate(proxy.folder)), port, upstream }));
    proxy.process = spawn("nginx", ["-e", join(proxy.folder, "error.log"), "-c", file], { stdio: ["ignore", "ignore", "inherit"] });
    proxy.ended = new Promise((resolve) => proxy.process.once("exit", resolve));
    process.once("exit", () => proxy.process.kill());
    return proxy;
  }

  async stop() {
    this.process.kill();
    await this.ended;
    await rm(this.folder, { recursive: true, force: true });
  }
}
