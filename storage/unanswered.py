"""The error of a request to S3 that was not answered. Importing it takes a second, because of botocore."""

from __future__ import annotations

from botocore.exceptions import ConnectionError, ReadTimeoutError


class Unanswered(ConnectionError):
    """The server did not answer in time. botocore tries it again; s3fs, unlike `ReadTimeoutError`, does not."""

    fmt = ReadTimeoutError.fmt
