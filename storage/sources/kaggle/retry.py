"""What is tried again, and after how long.

Retries live here and not in the Prefect task: a task's delays are fixed beforehand, while Kaggle says with Retry-After
how long it wants to be left alone; a cut transfer goes on in the same file; and one that moves may be cut any number of
times. What this module gives up on is a `UserError`, which the task does not try again: attempts never multiply.
"""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from storage.sources.kaggle.errors import Unreachable, described, explained

Result = TypeVar("Result")


@dataclass(frozen=True)
class Policy:
    """How patient to be: attempts without any progress, delays in seconds, the longest Retry-After to sit out."""

    attempts: int = 8
    first: float = 1.0
    cap: float = 60.0
    longest: float = 900.0


def sleep(seconds: float) -> None:
    """Wait. Tests put their own in its place."""
    time.sleep(seconds)


def passing() -> tuple[type[Exception], ...]:
    """Errors of network and server; whether one of them can pass is for `explained` to say."""
    import requests
    import urllib3

    return requests.RequestException, urllib3.exceptions.HTTPError


class Retries:
    """Counts the failures of one piece of work and waits after each."""

    def __init__(self, what: str, page: str, tell: Callable[[str], None], policy: Policy | None = None) -> None:
        self.what, self.page, self.tell, self.policy = what, page, tell, policy or Policy()
        self.failures = 0

    def progress(self) -> None:
        """Something came: earlier failures do not count any more."""
        self.failures = 0

    def failed(self, error: Exception) -> None:
        """Wait before the next attempt, or raise the `KaggleError` that ends it."""
        final = explained(self.what, self.page, error)
        if final is not None:
            raise final from None
        self.failures += 1
        if self.failures >= self.policy.attempts:
            raise Unreachable(
                f"{self.what}: gave up after {self.failures} attempts ({described(error)}); run again to go on"
            ) from None
        delay = self._delay(error)
        self.tell(f"waiting {delay:.0f} s: {described(error)}")
        sleep(delay)

    def _delay(self, error: Exception) -> float:
        policy = self.policy
        backoff = min(policy.cap, policy.first * 2 ** (self.failures - 1)) * random.uniform(0.5, 1.5)
        asked = retry_after(getattr(error, "response", None))
        if asked is None:
            return backoff
        if asked > policy.longest:
            raise Unreachable(f"{self.what}: Kaggle asks to wait {asked:.0f} s; run again after that") from None
        # Never earlier than asked; a little later, so that those who were sent away do not all come back at once.
        return asked + random.uniform(0, 0.1 * asked + policy.first)


def retrying(
    what: str,
    page: str,
    function: Callable[[], Result],
    tell: Callable[[str], None] = lambda _: None,
    policy: Policy | None = None,
) -> Result:
    """The result of `function`, tried again while the cause of its failure can pass. Raises `KaggleError`."""
    retries, errors = Retries(what, page, tell, policy), passing()
    while True:
        try:
            return function()
        except errors as error:
            retries.failed(error)


def retry_after(response: Any) -> float | None:
    """Seconds that the header Retry-After asks for (a number or a date, RFC 9110 10.2.3), None without one."""
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
