"""Receive uploaded files from an untrusted client, within limits of size and time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from common.units import size
from sandbox.serving import in_thread

FORM_BYTES = 64 * 1024
"""Maximum size of everything in a form other than the files."""
DRAIN_SECONDS = 15.0
"""Time for reading the rest of a body that is too large: many clients read the response only after sending it all."""


class BadUpload(Exception):
    """The request contains no usable file; the message is for the agent."""


class TooLarge(BadUpload):
    """The file is larger than a submission may be."""


@dataclass(frozen=True)
class Upload:
    """A received file."""

    size: int
    sha256: str


async def receive(
    request: Request, folder: Path, files: Mapping[str, str], max_bytes: int, seconds: float
) -> dict[str, Upload]:
    """Write the files of a form to `folder`, each as FIELD.csv. Returns what was received, by field.

    Args:
        request: a multipart form with one file in each field.
        folder: an empty folder.
        files: the fields, and how messages call the file of each.
        max_bytes: maximum size of each file.
        seconds: maximum duration of the upload.

    Raises:
        BadUpload: a file is missing, too large or too slow, or the connection was lost.
    """
    example = " ".join(f'-F "{field}=@{"submission" if len(files) == 1 else field}.csv"' for field in files)
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise BadUpload(f"send the {'submission' if len(files) == 1 else 'files'} as a form: curl {example}")
    names = " or ".join(files.values())
    body = _limited(request, len(files) * max_bytes + FORM_BYTES, f"{names} is larger than {size(max_bytes)}")
    try:
        async with asyncio.timeout(seconds):
            form = await MultiPartParser(
                request.headers, body, max_files=len(files), max_fields=8, max_part_size=FORM_BYTES
            ).parse()
            try:
                uploads = {}
                for field in files:
                    file = form.get(field)
                    if not isinstance(file, UploadFile):
                        raise BadUpload(f'the form has no file named "{field}": curl {example}')
                    if file.size is not None and file.size > max_bytes:
                        raise TooLarge(f"{files[field]} is larger than {size(max_bytes)}")
                    uploads[field] = await in_thread(partial(_save, file, folder / f"{field}.csv"))
                return uploads
            finally:
                await form.close()
    except MultiPartException as error:
        raise BadUpload("the form cannot be read as multipart/form-data") from error
    except TimeoutError as error:
        raise BadUpload(f"{names} did not arrive within {seconds:g} seconds") from error
    except ClientDisconnect as error:
        raise BadUpload("the connection was lost") from error


async def _limited(request: Request, max_bytes: int, message: str) -> AsyncGenerator[bytes, None]:
    """Yield the body; raises `TooLarge` once it exceeds `max_bytes`."""
    declared, received_bytes = request.headers.get("content-length", ""), 0
    chunks = request.stream()
    too_large = declared.isdecimal() and int(declared[:20]) > max_bytes
    if too_large and request.headers.get("expect", "").lower() == "100-continue":
        raise TooLarge(message)  # the client waits for permission to send the body
    while not too_large:
        chunk = await anext(chunks, None)
        if chunk is None:
            return
        received_bytes += len(chunk)
        too_large = received_bytes > max_bytes
        if not too_large:
            yield chunk
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in chunks:
                pass
    except (TimeoutError, ClientDisconnect):
        pass
    raise TooLarge(message)


def _save(file: UploadFile, target: Path) -> Upload:
    digest, written = hashlib.sha256(), 0
    with target.open("wb") as writer:
        while chunk := file.file.read(1 << 20):
            digest.update(chunk)
            written += writer.write(chunk)
    return Upload(written, digest.hexdigest())
