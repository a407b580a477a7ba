"""A small app for the tests of the proxy: streams, echoes, and a WebSocket, by hand."""
import asyncio, base64, hashlib, os

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def main():
    go = asyncio.Event()

    async def serve(reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *fields = head.split("\r\n")
            headers = {}
            for field in filter(None, fields):
                name, _, value = field.partition(":")
                headers[name.lower()] = value.strip()
            await answer(line.split()[0], line.split()[1], headers, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(method, path, headers, reader, writer):
        if headers.get("upgrade", "").lower() == "websocket":
            return await websocket(path, headers, reader, writer)
        if headers.get("upgrade") == "shout":
            writer.write(b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n")
            while data := await reader.read(1000):
                writer.write(data.upper())
            return
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        if path == "/chunks":
            writer.write(chunked + b"5\r\nfirst\r\n")
            await go.wait()
            writer.write(b"6\r\nsecond\r\n0\r\n\r\n")
        elif path == "/echo":
            writer.write(chunked)
            while size := int(await reader.readline(), 16):
                piece = await reader.readexactly(size + 2)
                writer.write(b"%x\r\n" % size + piece)
            writer.write(b"0\r\n\r\n")
        elif path == "/broken":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        elif path == "/rude":
            pass
        else:
            if path == "/go":
                go.set()
            body = "\n".join([f"{method} {path}", *(f"{k}: {v}" for k, v in sorted(headers.items()))])
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nX-App: yes\r\n\r\n{body}".encode())
        await writer.drain()

    async def websocket(path, headers, reader, writer):
        key = hashlib.sha1((headers["sec-websocket-key"] + GUID).encode()).digest()
        accept = base64.b64encode(key).decode()
        writer.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        hello = path.encode()
        writer.write(bytes([0x81, len(hello)]) + hello)
        while True:
            first, length = await reader.readexactly(2)
            mask = await reader.readexactly(4)
            data = await reader.readexactly(length & 127)
            data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
            writer.write(bytes([first, len(data)]) + data)

    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]))
    print("listening", flush=True)
    await server.serve_forever()


asyncio.run(main())
