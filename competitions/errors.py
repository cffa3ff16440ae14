"""Errors about competitions and their downloads. Each message is one line that says what to do."""

from __future__ import annotations

from common.errors import Kind, UsageError, UserError


class UnknownCompetition(UsageError, LookupError):
    """The catalog has no competition with that id."""


class UnknownSplit(UsageError, LookupError):
    """There is no complexity split with that name."""


class BadCompetition(UserError):
    """A competition folder is incomplete or its facts are invalid."""


class DownloadError(UserError):
    """A download is damaged, or lacks a file that preparation needs.

    It is raised when the bytes are known to be wrong. Errors of reading them (network, store, disk) stay unchanged.
    """

    kind: Kind | None = "damaged data"


class Unavailable(DownloadError):
    """The archive of a competition cannot be had here, as `availability` in its competition.yaml says."""

    kind = "missing"
