"""The cases of sockets.test.js again, by another client: websockets from PyPI."""

import asyncio
import sys

import websockets

BASE, ORIGIN, COOKIE = sys.argv[1:]


def connect(path):
    return websockets.connect(
        BASE + path, origin=ORIGIN, additional_headers={"Cookie": COOKIE}, max_size=None, compression=None, open_timeout=60
    )


async def large():
    async with connect("/echo") as socket:
        await socket.send(b"nacre" * (1024 * 1024 // 5))
        assert await socket.recv() == b"nacre" * (1024 * 1024 // 5)


async def fragments():
    async with connect("/echo") as socket:
        await socket.send(str(n % 10) * 1000 for n in range(16))
        assert await socket.recv() == "".join(str(n % 10) * 1000 for n in range(16))


async def ping():
    async with connect("/echo") as socket:
        await asyncio.wait_for(await socket.ping(b"are you there"), 60)


async def close():
    async with connect("/close") as socket:
        await socket.send("go")
        try:
            await socket.recv()
        except websockets.ConnectionClosed as closed:
            assert (closed.rcvd.code, closed.rcvd.reason) == (4321, "the app says so"), closed
        else:
            raise AssertionError("it stayed open")


async def crowd():
    async def one(n):
        async with connect("/echo") as socket:
            ready.release()
            await go.wait()
            await socket.send(f"number {n}")
            assert await socket.recv() == f"number {n}"

    ready, go = asyncio.Semaphore(0), asyncio.Event()
    tasks = [asyncio.create_task(one(n)) for n in range(100)]
    for _ in tasks:
        await asyncio.wait_for(ready.acquire(), 60)
    go.set()
    await asyncio.gather(*tasks)


async def main():
    for case in (large, fragments, ping, close, crowd):
        await case()
        print(case.__name__, end=" ")
    print("done")


asyncio.run(main())
