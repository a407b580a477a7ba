"""An app that looks like a desktop: a page with a module, below its base, as broken as the file `mode` says."""
import asyncio, base64, hashlib, json, os

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BASE = os.environ.get("BASE_PATH", "/")
PAGE = f'<!doctype html><html><head><title>app</title></head><body><script type="module" src="{BASE}main.js"></script></body></html>'


def mode():
    try:
        return open("mode").read().strip()
    except FileNotFoundError:
        return ""


def respond(writer, status, kind, body):
    writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                 f"ETag: \"same\"\r\nConnection: close\r\n\r\n{body}".encode())


async def serve(reader, writer):
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.split("\r\n")
        headers = {}
        for field in filter(None, fields):
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        path = line.split()[1]
        if headers.get("upgrade", "").lower() == "websocket":
            return await websocket(path, headers, reader, writer)
        now = mode()
        if path == BASE and now == "hang":
            await asyncio.sleep(1000)
        elif path == BASE and now.startswith(("404", "500")):
            respond(writer, f"{now} Broken", "text/html", "<h1>broken</h1>")
        elif path == BASE:
            respond(writer, "200 OK", "text/html", PAGE)
        elif path == BASE + "main.js" and now == "syntax":
            respond(writer, "500 Error", "text/javascript", "")
        elif path == BASE + "main.js":
            respond(writer, "200 OK", "text/javascript", "1")
        elif not path.startswith(BASE):
            respond(writer, "404 Elsewhere", "text/plain", "not below the base")
        else:
            said = {"path": path, "base": os.environ.get("BASE_PATH"), "port": os.environ["PORT"], "headers": headers}
            respond(writer, "200 OK", "application/json", json.dumps(said))
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def websocket(path, headers, reader, writer):
    key = hashlib.sha1((headers["sec-websocket-key"] + GUID).encode()).digest()
    writer.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 f"Sec-WebSocket-Accept: {base64.b64encode(key).decode()}\r\n\r\n".encode())
    hello = path.encode()
    writer.write(bytes([0x81, len(hello)]) + hello)
    await reader.read(1)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]))
    print("listening below", BASE, flush=True)
    await server.serve_forever()


asyncio.run(main())
