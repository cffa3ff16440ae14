"""What can be wrong with competitions and their downloads; each message is one line that says what to do."""

from __future__ import annotations

from common.errors import UserError


class UnknownCompetition(UserError, LookupError):
    """No competition of that id is in the catalog."""


class UnknownSplit(UserError, LookupError):
    """No split of that name exists."""


class BadCompetition(UserError):
    """A competition folder is incomplete or its facts do not validate."""


class DownloadError(UserError):
    """A download is damaged, or lacks a file that preparation needs."""
