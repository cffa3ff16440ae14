"""The program of the forwarder container: forwards TCP connections to Unix sockets of the host.

    python3 forward.py PORT=SOCKET ...

It imports the standard library only. Every connection opens the socket again, so a restarted service is found.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

CHUNK = 64 * 1024


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _serve(port: int, path: str) -> asyncio.Server:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            service_reader, service_writer = await asyncio.open_unix_connection(path)
        except OSError:
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
            service_writer = None
        try:
            if service_writer is not None:
                await asyncio.gather(_pump(reader, service_writer), _pump(service_reader, writer))
        finally:
            for stream in (writer, service_writer):
                if stream is not None:
                    stream.close()

    return await asyncio.start_server(handle, "127.0.0.1", port)


async def _main(pairs: list[str]) -> None:
    servers = [await _serve(int(port), path) for port, _, path in (pair.partition("=") for pair in pairs)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
