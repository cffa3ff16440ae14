"""The error of a request to S3 that was not answered. Importing it takes a second, because of botocore."""

from __future__ import annotations

from botocore.exceptions import ConnectionError, ReadTimeoutError


class Unanswered(ConnectionError):
    """The server did not answer in time. botocore retries the request; s3fs does not, unlike for `ReadTimeoutError`."""

    fmt = ReadTimeoutError.fmt
