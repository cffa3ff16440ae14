"""Try at the opening of a store what is used of it later: servers that speak the protocol of S3 lack this or that.

| used for | requests to S3 | what fails without it |
|---|---|---|
| leases | PutObject with If-None-Match | two processes could do the same work: refused |
| records, tables | PutObject, GetObject | everything: refused |
| large files | CreateMultipartUpload, UploadPart, CompleteMultipartUpload | the first large file: refused |
| archives | GetObject with Range | preparing: refused |
| listings | ListObjectsV2 with pages | `ls`, `rm`, `gc`: refused |
| removing | DeleteObject, and DeleteObjects with Content-MD5 | without DeleteObjects, files are removed one by one |
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common.causes import cause_of
from common.concurrency import bounded_map
from common.locks import locked
from competitions.preparing.archives.listing import s3_pages
from storage.exclusive import create
from storage.remote import describe_error, remove_from_s3
from storage.writers import StoreError

_CONTENT = b"probe"
_CREATORS = 3


def probe(fs: Any, root: str, url: str, *, local: bool) -> None:
    """Create, replace, read, list and remove small files.

    Args:
        fs: file system of fsspec.
        root: path of the store on it.
        url: the store's URL, for messages.
        local: whether `fs` is the local file system.

    Raises:
        StoreError: the store lacks something, which the message names.
        Exception: errors that pass, and those of credentials and permissions, as the file system raises them.
    """
    if local:
        if Path(root).is_file():
            raise StoreError(f"store {url} is a file; choose a directory with --store")
        Path(root).mkdir(parents=True, exist_ok=True)
    folder = f"{root}/.probe-{uuid.uuid4().hex}"
    first = f"{folder}/first"
    with _uses(url, "create a file only if it does not exist (PutObject with If-None-Match)"):
        if _created(fs, first, local) != 1:
            raise StoreError(
                f"store {url} creates a file that exists already (it ignores If-None-Match), so two processes could do "
                "the same work at once; choose another with --store"
            )
    with _uses(url, "replace a file"):
        fs.pipe_file(first, _CONTENT)
    with _uses(url, "read a file"):
        if fs.cat_file(first) != _CONTENT:
            raise StoreError(f"store {url}: the content read differs from the content written")
    if "s3" in fs.protocol:
        _probe_s3(fs, folder, url)
    elif local:
        fs.rm(folder, recursive=True)
        lock = Path(f"{folder}.lock")
        try:
            with locked(lock):  # as users of datasets do
                pass
        finally:
            lock.unlink(missing_ok=True)
    else:
        fs.rm_file(first)


def _created(fs: Any, path: str, local: bool) -> int:
    """How many of several processes could create a file: some servers are right only if one asks after the other."""
    calls = [(0, partial(create, fs, path, uuid.uuid4().bytes, local)) for _ in range(_CREATORS)]
    at_once = sum(bounded_map(calls, count=_CREATORS, total=0))
    return at_once + create(fs, path, uuid.uuid4().bytes, local)


def _probe_s3(fs: Any, folder: str, url: str) -> None:
    bucket, key, _ = fs.split_path(f"{folder}/second")
    with _uses(url, "take a file in parts (CreateMultipartUpload, UploadPart, CompleteMultipartUpload)"):
        where = {"Bucket": bucket, "Key": key}
        where["UploadId"] = fs.call_s3("create_multipart_upload", **where)["UploadId"]
        part = {"PartNumber": 1, "ETag": fs.call_s3("upload_part", PartNumber=1, Body=_CONTENT, **where)["ETag"]}
        fs.call_s3("complete_multipart_upload", MultipartUpload={"Parts": [part]}, **where)
    with _uses(url, "give a part of a file (GetObject with Range)"):
        if fs.cat_file(f"{folder}/second", start=1, end=3) != _CONTENT[1:3]:
            raise StoreError(f"store {url} does not give a part of a file (GetObject with Range); choose another")
    with _uses(url, "list files in pages (ListObjectsV2)"):
        listed = [entry["Key"] for page in s3_pages(fs, folder, entries=1) for entry in page]
        if len(listed) != len(("first", "second")):
            raise StoreError(f"store {url} does not list what was written (ListObjectsV2); choose another with --store")
    with _uses(url, "remove files (DeleteObject)"):
        remove_from_s3(fs, folder)


@contextlib.contextmanager
def _uses(url: str, what: str) -> Iterator[None]:
    """Say what a store cannot do, if its answer says that a request is not for it."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        if cause_of(error).kind != "user input":
            raise
        raise StoreError(f"store {url} cannot {what}: {describe_error(error)}; choose another with --store") from error
