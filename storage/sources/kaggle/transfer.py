"""An archive as a stream of bytes that goes on where it was cut."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from storage.sources.kaggle.client import connect
from storage.sources.kaggle.errors import competition_page, status_of
from storage.sources.kaggle.retry import Policy, Retries, passing
from storage.sources.source import SourceChanged, Tell

_PIECE = 1 << 18
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)$")


class Identity(NamedTuple):
    """What tells one archive from another without reading it: entity tag or date, and size; None where not said."""

    validator: str | None
    size: int | None


class Transfer:
    """One archive on its way. `identity` is known when the first piece comes."""

    def __init__(
        self, competition_id: str, tell: Tell, known: Identity | None = None, policy: Policy | None = None
    ) -> None:
        self.competition_id, self.tell, self.identity = competition_id, tell, known
        self._retries = Retries(competition_id, competition_page(competition_id), tell, policy)
        self._told = 0.0

    def pieces(self, offset: int = 0) -> Iterator[bytes]:
        """The archive's bytes from `offset` on, to the very last one.

        After a cut the rest is asked for, as often as it takes while anything arrives; each time through the API, so
        that the signed address is fresh. Raises `SourceChanged` if Kaggle serves another archive than the one of
        which `offset` bytes are held, and `KaggleError` for what does not pass.
        """
        errors = passing()
        while True:
            try:
                for piece in self._attempt(offset):
                    offset += len(piece)
                    self._retries.progress()
                    self._show(offset)
                    yield piece
                self._require_all(offset)
            except errors as error:
                self._retries.failed(error)
            else:
                return

    def _attempt(self, offset: int) -> Iterator[bytes]:
        """The bytes from `offset` to wherever the connection ends."""
        import requests
        from kagglesdk.competitions.types.competition_api_service import ApiDownloadDataFilesRequest

        whole = self.identity is not None and offset == self.identity.size
        resume = offset > 0 and not whole  # of a whole archive only the identity is asked for
        request = ApiDownloadDataFilesRequest()
        request.competition_name = self.competition_id
        with connect({"Range": f"bytes={offset}-"} if resume else None) as client:
            try:
                response = client.competitions.competition_api_client.download_data_files(request)
            except requests.HTTPError as error:
                if resume and status_of(error)[0] == 416:
                    raise SourceChanged from None
                raise
            try:
                skip = self._check(response, offset)
                if not whole:
                    yield from _after(skip, response.iter_content(_PIECE))
            finally:
                response.close()

    def _check(self, response: Any, offset: int) -> int:
        """Take note of what is served; returns how many of its first bytes are held already."""
        headers = response.headers
        validator = headers.get("ETag") or headers.get("Last-Modified")
        if response.status_code == 206:
            match = _RANGE.match(headers.get("Content-Range", ""))
            if match is None or int(match[1]) != offset:
                raise SourceChanged
            found, skip = Identity(validator, int(match[2])), 0
        else:  # all of it: asked for so, or a server that does not know ranges
            length = headers.get("Content-Length")
            found, skip = Identity(validator, int(length) if length and length.isdigit() else None), offset
        if self.identity is not None and found != self.identity:
            raise SourceChanged
        self.identity = found
        return skip

    def _require_all(self, offset: int) -> None:
        import requests

        size = self.identity.size if self.identity else None
        if size is not None and offset != size:
            raise requests.exceptions.ChunkedEncodingError(f"cut at {offset:,} of {size:,} bytes")

    def _show(self, offset: int) -> None:
        if time.monotonic() - self._told >= 1:
            self._told = time.monotonic()
            size = self.identity.size if self.identity else None
            self.tell(f"{offset / 1e6:,.0f} of {size / 1e6:,.0f} MB" if size else f"{offset / 1e6:,.0f} MB")


def _after(skip: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces without their first `skip` bytes."""
    for piece in pieces:
        if skip < len(piece):
            yield piece[skip:]
        skip = max(0, skip - len(piece))
