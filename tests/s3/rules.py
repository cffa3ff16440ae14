"""Rules of a proxy: what happens to which requests; see `tests.s3.faults`."""

from __future__ import annotations

import re
import sys
import threading
from dataclasses import dataclass, field
from typing import Literal

ALWAYS = sys.maxsize

_ANY = re.compile("")

Effect = Literal["status", "reset", "lose_answer", "truncate", "hang", "delay", "repeat"]


@dataclass
class Rule:
    """What happens to which requests. `hits` counts those that it happened to; `amount` is the effect's number.

    `header` is searched in the lines of the head, `code` is the server's name of the error.
    """

    effect: Effect
    amount: float
    method: str | None
    path: re.Pattern[str]
    nth: int
    times: int
    header: re.Pattern[str] = _ANY
    code: str = ""
    seen: int = 0
    hits: int = 0
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let go of what hangs, and of what would: held requests are now forwarded (their client may be gone)."""
        self.released.set()

    def takes(self, method: str, path: str, head: str = "") -> bool:
        """Count a request; true if the effect is for it."""
        if self.method not in (None, method) or not self.path.search(path) or not self.header.search(head):
            return False
        self.seen += 1
        if self.seen < self.nth or self.hits >= self.times:
            return False
        self.hits += 1
        return True


class Faults:
    """The rules of a proxy, in the order in which they were made."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self._lock = threading.Lock()

    def status(self, code: int, method: str | None = None, path: str = "", nth: int = 1, times: int = 1) -> Rule:
        """The server answers with a status such as 503 and does nothing."""
        return self._add(Rule("status", code, method, re.compile(path), nth, times))

    def refuse(self, status: int, code: str, method: str | None = None, path: str = "", header: str = "") -> Rule:
        """The server has no such request: it answers all of them with a status and an error code."""
        pattern = re.compile(header, re.IGNORECASE | re.MULTILINE)
        return self._add(Rule("status", status, method, re.compile(path), 1, ALWAYS, pattern, code))

    def reset(self, method: str | None = None, path: str = "", nth: int = 1, times: int = 1) -> Rule:
        """The connection is reset before the server has seen the request."""
        return self._add(Rule("reset", 0, method, re.compile(path), nth, times))

    def lose_answer(self, method: str | None = None, path: str = "", nth: int = 1, times: int = 1) -> Rule:
        """The server does what it is asked, the connection is reset before its answer arrives."""
        return self._add(Rule("lose_answer", 0, method, re.compile(path), nth, times))

    def truncate(self, count: int, method: str | None = None, path: str = "", nth: int = 1, times: int = 1) -> Rule:
        """The connection ends after `count` bytes of the body, although the head promises all of it."""
        return self._add(Rule("truncate", count, method, re.compile(path), nth, times))

    def hang(self, method: str | None = None, path: str = "", nth: int = 1, times: int = 1) -> Rule:
        """Nothing happens until the rule is released or the proxy closed; then the request is forwarded."""
        return self._add(Rule("hang", 0, method, re.compile(path), nth, times))

    def repeat(self, method: str | None = None, path: str = "", nth: int = 1, times: int = 1) -> Rule:
        """The server gets the request twice, the client the second answer."""
        return self._add(Rule("repeat", 0, method, re.compile(path), nth, times))

    def delay(self, seconds: float, method: str | None = None, path: str = "") -> Rule:
        """Every matching request reaches the server that much later; other rules still apply to it."""
        return self._add(Rule("delay", seconds, method, re.compile(path), 1, ALWAYS))

    def clear(self) -> None:
        """No rules any more; what hangs goes on."""
        with self._lock:
            rules, self.rules = self.rules, []
        for rule in rules:
            rule.release()

    def _add(self, rule: Rule) -> Rule:
        with self._lock:
            self.rules.append(rule)
        return rule

    def for_request(self, method: str, path: str, head: str = "") -> tuple[float, Rule | None]:
        """The seconds by which a request is late, and what else happens to it."""
        late, chosen = 0.0, None
        with self._lock:
            for rule in self.rules:
                if rule.effect == "delay":
                    late += rule.amount if rule.takes(method, path, head) else 0.0
                elif chosen is None and rule.takes(method, path, head):
                    chosen = rule
        return late, chosen
