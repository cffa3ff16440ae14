"""Retries of requests to Kaggle.

They are not left to the Prefect task, because its delays are fixed in advance, whereas Kaggle requests delays with
Retry-After, a transfer resumes within the same file, and a transfer that makes progress may be interrupted any number
of times. The error that is raised when the patience is used up is permanent, so that retries of the task do not
multiply the patience.
"""

from __future__ import annotations

import email.utils
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from common.errors import one_line
from common.patience import patience
from storage.sources.kaggle.credentials import redact
from storage.sources.kaggle.errors import KaggleError, Unreachable, describe, final_error
from storage.sources.source import Report

Result = TypeVar("Result")


@dataclass(frozen=True)
class Policy:
    """Number of tries without progress, delays, the longest accepted Retry-After, and the patience, in seconds."""

    tries: int = 8
    first: float = 1.0
    cap: float = 60.0
    longest: float = 900.0
    patience: float = field(default_factory=patience)
    """After so long without progress since the first failure it gives up, however many tries are left."""


def sleep(seconds: float) -> None:
    """Wait. Tests replace this function."""
    time.sleep(seconds)


def network_errors() -> tuple[type[Exception], ...]:
    """Exceptions of network and server. `final_error` decides which of them are transient."""
    import requests
    import urllib3

    return requests.RequestException, urllib3.exceptions.HTTPError


class Retries:
    """Counts the consecutive failures of a request and waits after each."""

    def __init__(self, what: str, page: str, report: Report, policy: Policy | None = None) -> None:
        self.what, self.page, self.report, self.policy = what, page, report, policy or Policy()
        self.failures, self._since = 0, 0.0

    def progress(self) -> None:
        """Reset the count after data has arrived."""
        self.failures = 0

    def failed(self, error: Exception) -> None:
        """Wait before the next try, or raise the `KaggleError` that ends it."""
        final = final_error(self.what, self.page, error)
        if final is not None:
            raise final from None
        self._since = self._since if self.failures else time.monotonic()
        self.failures += 1
        remaining_seconds = self._since + self.policy.patience - time.monotonic()
        impatient = remaining_seconds <= 0
        if impatient or self.failures >= self.policy.tries:
            tries = f"{self.failures} {'try' if self.failures == 1 else 'tries'}"
            gave_up = Unreachable(f"{self.what}: gave up after {tries} ({describe(error)}); run again to resume")
            raise (gave_up.of_kind("user input") if impatient else gave_up) from None
        delay = min(self._delay(error), remaining_seconds)
        self.report(f"waiting {delay:.0f} s: {describe(error)}")
        sleep(delay)

    def _delay(self, error: Exception) -> float:
        policy = self.policy
        backoff = min(policy.cap, policy.first * 2 ** (self.failures - 1)) * random.uniform(0.5, 1.5)
        requested_seconds = retry_after(getattr(error, "response", None))
        if requested_seconds is None:
            return backoff
        if requested_seconds > policy.longest:
            raise Unreachable(
                f"{self.what}: Kaggle asks to wait {requested_seconds:.0f} s; run again after that"
            ) from None
        # Never earlier than requested, and with jitter, so that rejected clients do not all return at the same time.
        return requested_seconds + random.uniform(0, 0.1 * requested_seconds + policy.first)


def _warn(text: str) -> None:
    logging.getLogger("mlebench.kaggle").warning("%s", text)


def retrying(
    what: str,
    page: str,
    function: Callable[[], Result],
    report: Report = _warn,
    policy: Policy | None = None,
) -> Result:
    """Call `function`, retry it after transient errors, and return its result; each wait is reported.

    Raises `KaggleError`, also if the answer cannot be read.
    """
    retries, errors = Retries(what, page, report, policy), network_errors()
    while True:
        try:
            return function()
        except errors as error:
            retries.failed(error)
        except (ValueError, TypeError, LookupError, AttributeError) as error:  # the SDK, of a value of another form
            reason = redact(f"{type(error).__name__}: {one_line(error)}")[:200]
            raise KaggleError(
                f"{what}: Kaggle's answer cannot be read ({reason}); try again later, or with another version of kaggle"
            ) from error


def retry_after(response: Any) -> float | None:
    """Seconds requested by the header Retry-After (a number or a date, RFC 9110 10.2.3); None without the header."""
    value = None if response is None else response.headers.get("Retry-After")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
