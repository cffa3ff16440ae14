"""Taking a file from a client that may send too much, too slowly, or something else."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from common.units import size
from sandbox.serving import in_thread

FIELD = "file"
FORM_BYTES = 64 * 1024
"""What a form may have besides the file."""
DRAIN_SECONDS = 15.0
"""How long the rest of a body that is too large is taken in, for many clients read the answer only afterwards."""


class BadUpload(Exception):
    """There is no file to judge; the message is for the agent."""


class TooLarge(BadUpload):
    """The file is larger than any submission may be."""


@dataclass(frozen=True)
class Upload:
    """A file that was received."""

    size: int
    sha256: str


async def receive(request: Request, target: Path, most_bytes: int, seconds: float) -> Upload:
    """Write the form's file to `target`.

    Args:
        request: a multipart form with one file named "file".
        target: written; its folder exists.
        most_bytes: size the file may have.
        seconds: within which it must have come.

    Raises:
        BadUpload: no such file, too large, too slow, or broken off.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise BadUpload('send the submission as a form: curl -F "file=@submission.csv"')
    body = _limited(request, most_bytes + FORM_BYTES, f"the file is larger than {size(most_bytes)}")
    try:
        async with asyncio.timeout(seconds):
            form = await MultiPartParser(
                request.headers, body, max_files=1, max_fields=8, max_part_size=FORM_BYTES
            ).parse()
            try:
                file = form.get(FIELD)
                if not isinstance(file, UploadFile):
                    raise BadUpload(f'the form has no file named "{FIELD}": curl -F "{FIELD}=@submission.csv"')
                return await in_thread(partial(_keep, file, target))
            finally:
                await form.close()
    except MultiPartException as error:
        raise BadUpload("the form cannot be read as multipart/form-data") from error
    except TimeoutError as error:
        raise BadUpload(f"the file did not arrive within {seconds:g} seconds") from error
    except ClientDisconnect as error:
        raise BadUpload("the connection broke off") from error


async def _limited(request: Request, most_bytes: int, complaint: str) -> AsyncGenerator[bytes, None]:
    """The body, as long as it is not too large."""
    declared, taken = request.headers.get("content-length", ""), 0
    chunks = request.stream()
    too_large = declared.isdecimal() and int(declared[:20]) > most_bytes
    if too_large and request.headers.get("expect", "").lower() == "100-continue":
        raise TooLarge(complaint)  # it has not begun to send
    while not too_large:
        chunk = await anext(chunks, None)
        if chunk is None:
            return
        taken += len(chunk)
        too_large = taken > most_bytes
        if not too_large:
            yield chunk
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in chunks:
                pass
    except (TimeoutError, ClientDisconnect):
        pass
    raise TooLarge(complaint)


def _keep(file: UploadFile, target: Path) -> Upload:
    digest, written = hashlib.sha256(), 0
    with target.open("wb") as writer:
        while chunk := file.file.read(1 << 20):
            digest.update(chunk)
            written += writer.write(chunk)
    return Upload(written, digest.hexdigest())
