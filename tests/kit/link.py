"""A TCP proxy on the loopback interface: `python -m tests.kit.link FROM TO`. A test stops it to cut the link."""

import asyncio
import sys


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass on bytes until one of the two ends."""
    try:
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    target.close()


async def main(here: int, there: int) -> None:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            theirs = await asyncio.open_connection("127.0.0.1", there)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, theirs[1]), copy(theirs[0], writer))

    async with await asyncio.start_server(meet, "127.0.0.1", here) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
