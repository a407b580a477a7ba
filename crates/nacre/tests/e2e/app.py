"""An app that says whose it is: over HTTP, and as the first message of a WebSocket."""
import asyncio, base64, hashlib, json, os

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
NAME = open("/workspace/name").read().strip()


def describe(method, path, headers):
    said = {"app": NAME, "method": method, "path": path}
    for name in ["cookie", "authorization", "x-nacre-user", "x-forwarded-prefix"]:
        said[name] = headers.get(name)
    return json.dumps(said).encode()


async def serve(reader, writer):
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.split("\r\n")
        pairs = (field.partition(":") for field in fields if field)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        method, path, _ = line.split()
        said = describe(method, path, headers)
        if headers.get("upgrade", "").lower() == "websocket":
            await websocket(said, headers, reader, writer)
        else:
            status = "404 Not Found" if path == "/missing.js" else "200 OK"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(said)}\r\n".encode()
                         + b"Content-Type: text/html\r\nX-App: yes\r\nSet-Cookie: seen=yes; Path=/\r\nConnection: close\r\n\r\n" + said)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def websocket(said, headers, reader, writer):
    key = hashlib.sha1((headers["sec-websocket-key"] + GUID).encode()).digest()
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: " + base64.b64encode(key) + b"\r\n\r\n")
    writer.write(bytes([0x81, 126]) + len(said).to_bytes(2, "big") + said)
    while True:
        first, length = await reader.readexactly(2)
        mask = await reader.readexactly(4)
        data = await reader.readexactly(length & 127)
        data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        writer.write(bytes([first, len(data)]) + data)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]))
    await server.serve_forever()


asyncio.run(main())
