"""Competitions that not everybody can download, as `availability` in their competition.yaml says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from competitions.competition import Competition
from competitions.errors import DownloadError, Unavailable

REMEDY = "with an archive of it, put <id>.zip into a directory and give that as --raw-dir"


@contextlib.contextmanager
def stating_availability(competition: Competition) -> Iterator[None]:
    """Raise `Unavailable` if the block cannot have the download, and competition.yaml says that this may be so.

    Other errors, such as those of the network, of credentials or of a damaged archive, are raised as they are.
    """
    try:
        yield
    except DownloadError as error:
        stated = competition.facts.availability
        if stated is None or isinstance(error, Unavailable) or not _cannot_be_had(error):
            raise
        remedy = REMEDY.replace("<id>", competition.id)
        raise Unavailable(f"{competition.id}: {stated}; {remedy} ({error})") from error


def _cannot_be_had(error: DownloadError) -> bool:
    """Whether the source has no such download, or not for this user."""
    from storage.sources.kaggle.errors import KaggleError, NoAccess, NoCredentials, NotFound, RejectedCredentials

    if isinstance(error, KaggleError):
        return isinstance(error, NoAccess | NotFound | NoCredentials) and not isinstance(error, RejectedCredentials)
    return error.kind == "missing"  # in a directory of downloads
