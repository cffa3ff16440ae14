"""A download as a stream of bytes that resumes after an interruption."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from storage.sources.kaggle.client import connect
from storage.sources.kaggle.errors import competition_page, status_of
from storage.sources.kaggle.retry import Retries, network_errors
from storage.sources.source import NETWORK_TIMEOUT, Report, SourceChanged

PIECE_BYTES = 1 << 18
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class Identity(NamedTuple):
    """Identity of an archive from response headers: entity tag or date, and size; None for missing headers."""

    validator: str | None
    size: int | None


class Transfer:
    """The download of one archive. `identity` is known when the first piece arrives."""

    def __init__(
        self,
        competition_id: str,
        report: Report,
        known: Identity | None = None,
        timeout: float = NETWORK_TIMEOUT,
    ) -> None:
        self.competition_id, self.report, self.identity, self.timeout = competition_id, report, known, timeout
        self._retries = Retries(competition_id, competition_page(competition_id), report)
        self._reported = 0.0

    def pieces(self, offset: int = 0) -> Iterator[bytes]:
        """Yield the archive's bytes from `offset` to the end.

        After an interruption the rest is requested again, as long as data arrive. Each request goes through the API to
        get a new signed URL. Raises `SourceChanged` if Kaggle no longer serves the archive whose first `offset` bytes
        were downloaded, and `KaggleError` for permanent errors.
        """
        errors = network_errors()
        while True:
            try:
                for piece in self._read_from(offset):
                    offset += len(piece)
                    self._retries.progress()
                    self._show(offset)
                    yield piece
                self._require_all(offset)
            except errors as error:
                self._retries.failed(error)
            else:
                return

    def _read_from(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` until the connection ends."""
        import requests
        from kagglesdk.competitions.types.competition_api_service import ApiDownloadDataFilesRequest

        is_complete = self.identity is not None and offset == self.identity.size
        resume = offset > 0 and not is_complete  # for a complete archive only the identity is compared
        request = ApiDownloadDataFilesRequest()
        request.competition_name = self.competition_id
        with connect(self.timeout, {"Range": f"bytes={offset}-"} if resume else None) as client:
            try:
                response = client.competitions.competition_api_client.download_data_files(request)
            except requests.HTTPError as error:
                if resume and status_of(error)[0] == 416:
                    raise SourceChanged from None
                raise
            try:
                skip = self._check(response, offset)
                if not is_complete:
                    yield from _after(skip, response.iter_content(PIECE_BYTES))
            finally:
                response.close()

    def _check(self, response: Any, offset: int) -> int:
        """Check the identity of the response. Returns the number of its bytes to skip."""
        headers = response.headers
        validator = headers.get("ETag") or headers.get("Last-Modified")
        if response.status_code == 206:
            match = _RANGE.fullmatch(headers.get("Content-Range", ""))
            if match is None or int(match[1]) != offset:
                raise SourceChanged
            identity, skip = Identity(validator, int(match[2])), 0
        else:  # the whole archive, as requested or because the server does not support ranges
            length = headers.get("Content-Length")
            identity, skip = Identity(validator, int(length) if length and length.isdigit() else None), offset
        if self.identity is not None and identity != self.identity:
            raise SourceChanged
        self.identity = identity
        return skip

    def _require_all(self, offset: int) -> None:
        import requests

        size = self.identity.size if self.identity else None
        if size is not None and offset != size:
            raise requests.exceptions.ChunkedEncodingError(f"interrupted at {offset:,} of {size:,} bytes")

    def _show(self, offset: int) -> None:
        if time.monotonic() - self._reported >= 1:
            self._reported = time.monotonic()
            size = self.identity.size if self.identity else None
            self.report(f"{offset / 1e6:,.0f} of {size / 1e6:,.0f} MB" if size else f"{offset / 1e6:,.0f} MB")


def _after(skip: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces without their first `skip` bytes."""
    for piece in pieces:
        if skip < len(piece):
            yield piece[skip:]
        skip = max(0, skip - len(piece))
