"""Keep an agent's command line working until its time or budget ends, or until it insists that it is done.

Such agents stop when they think that they are done. Each call of their command is one turn of a session, and the next
turn continues it. Every turn begins with a message that states the deadline. The session ends

- shortly before the time limit (`Pace.reserve`), so that what it wrote is kept;
- when the gateway refuses requests because the budget is used up;
- when the agent insists: in three turns in a row, its command ended without an error, and no file in the folders of
  the code and the submission was added, changed or removed;
- when its command failed too often in a row.

What a command prints is kept in `logs/turns`, its own files in `logs/session`. Only the standard library is used: this
file runs in the agent's image.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

LOGS, CODE, SUBMISSION = (Path(os.environ[f"{name}_DIR"]) for name in ("LOGS", "CODE", "SUBMISSION"))
SESSION, TURNS = LOGS / "session", LOGS / "turns"
"""The files of the agent's own session, and what its command printed in each turn."""
INSTRUCTIONS = Path(os.environ["INSTRUCTIONS_FILE"])
FAILED = ("error", "turn.failed")
"""Types of a last event that say that the turn failed, whatever the exit code."""

FIRST = """\
{instructions}
YOUR SESSION
  {time}
  When you stop, you are asked to go on until then. If nothing is left to improve, say so and change no file: after
  {most} such answers in a row the run ends.{lost}
"""
LOST = """
  An earlier session of yours was lost. What it left in {code} and {submission} is still there: look at it first."""
NEXT = """\
{why} {time}
The task is in {instructions}. Go on: check what can still be improved, and improve it. If you are certain that nothing
is left to do, say so and change no file in {code} and {submission}: after {more} the run ends.
"""
STOPPED = "You stopped, and there is time left."
BROKEN = "Your session was interrupted by an error."
MOVED = "Your session was interrupted, and continues on another machine: programs that you had started are gone."


@dataclass(frozen=True)
class CommandLine:
    """The command line of an agent."""

    first: Callable[[str], list[str]]
    """The command that starts a session with a message."""
    again: Callable[[str], list[str]]
    """The command that continues the last session with a message."""
    session: str
    """Pattern of the files, relative to `SESSION`, of which one exists if there is a session to continue."""


@dataclass(frozen=True)
class Pace:
    """How often and how long. Times are in seconds."""

    insists: int = 3
    """Turns without an error and without changes, in a row, after which the session ends."""
    failures: int = 8
    """Turns with an error, in a row, after which the session ends."""
    renewed_after: int = 3
    """Turns with an error, in a row, after which the session is given up and a new one begins."""
    pause: float = 5
    """After an error; it doubles with every further one, up to `max_pause_seconds`."""
    max_pause_seconds: float = 300
    poll: float = 15
    refused: float = 600
    """For how long the budget may be used up before a command that goes on is ended, for example one that retries."""
    grace: float = 10
    """Between SIGTERM and SIGKILL of a command."""

    def reserve(self, limit: float) -> float:
        """Time that is left at the end: 2 % of the limit, at least 15 seconds and at most 5 minutes.

        >>> [Pace().reserve(limit) for limit in (60, 3600, 86400)]
        [15, 72.0, 300]
        """
        return min(max(15, limit * 0.02), 300)


class Session:
    """One run of an agent."""

    def __init__(self, command_line: CommandLine, pace: Pace) -> None:
        self.command_line, self.pace = command_line, pace
        limit = float(os.environ["TIME_LIMIT_SECONDS"])
        self.end = time.time() + limit - pace.reserve(limit)
        self.process: subprocess.Popen[bytes] | None = None
        self.failures = self.insists = 0

    def run(self) -> int:
        """Take turns; returns the exit code: 0, or that of the command if it failed in all turns or too often."""
        TURNS.mkdir(parents=True, exist_ok=True)
        SESSION.mkdir(exist_ok=True)
        why, lost = "", False
        if os.environ.get("MLEBENCH_RESUMED") == "1":
            why, lost = (MOVED, False) if self._exists() else ("", True)
        code, worked = 0, False
        while (ended := self._over()) is None:
            before = _files()
            code, ended = self._turn(self._command(why, lost=lost))
            changed = _files() != before
            if ended is not None:
                self.failures = 0
                break
            if code:
                self.failures, self.insists, why = self.failures + 1, 0, BROKEN
                if self.failures >= self.pace.failures:
                    ended = "errors"
                    break
                if self.failures == self.pace.renewed_after or not self._exists():
                    why, lost = "", True
                self._pause()
            else:
                self.failures, worked, why, lost = 0, True, STOPPED, False
                self.insists = 0 if changed else self.insists + 1
        report(ended=ended)
        # A command has not failed if it was ended because the time was over, or if the gateway refused its requests.
        return code if ended == "errors" or (ended == "time" and self.failures and not worked) else 0

    def _command(self, why: str, *, lost: bool) -> list[str]:
        where = {"code": CODE, "submission": SUBMISSION}
        if not why:
            note = LOST.format(**where) if lost else ""
            text = INSTRUCTIONS.read_text(encoding="utf-8")
            message = FIRST.format(instructions=text, time=self._time(), most=self.pace.insists, lost=note)
            return self.command_line.first(message)
        left = self.pace.insists - self.insists
        more = f"{left} such answers in a row" if left > 1 else "one more such answer"
        return self.command_line.again(
            NEXT.format(why=why, time=self._time(), instructions=INSTRUCTIONS, more=more, **where)
        )

    def _time(self) -> str:
        left = max(0, self.end - time.time())
        amount = f"{left / 3600:.1f} hours" if left >= 7200 else f"{left / 60:.0f} minutes"
        amount = amount if left >= 120 else f"{left:.0f} seconds"
        now, end = (datetime.fromtimestamp(at, UTC) for at in (time.time(), self.end))
        text = f"It is {now:%Y-%m-%d %H:%M:%S} UTC. You have {amount} left, until {end:%Y-%m-%d %H:%M:%S} UTC: then"
        text += " everything is stopped, so have a valid submission in place long before."
        amounts = [f"{left:,.6g} {unit}" for unit, left in (budget() or {}).get("left", {}).items() if left is not None]
        return f"{text} Of your budget for language models, {', '.join(amounts)} are left." if amounts else text

    def _exists(self) -> bool:
        return next(SESSION.glob(self.command_line.session), None) is not None

    def _over(self) -> str | None:
        """Why no further turn begins; None if one does."""
        if time.time() >= self.end:
            return "time"
        if self.insists >= self.pace.insists:
            return "insists"
        return "budget" if (budget() or {}).get("used_up") else None

    def _turn(self, command: list[str]) -> tuple[int, str | None]:
        """Run a command; returns its exit code, and why the session ends if the command did not end by itself."""
        number = sum(1 for _ in TURNS.glob("*.jsonl")) + 1
        printed = TURNS / f"{number:03}.jsonl"
        began, refused_since, ended = time.time(), None, None
        with printed.open("xb") as output:
            try:
                self.process = subprocess.Popen(
                    command, cwd=CODE, stdin=subprocess.DEVNULL, stdout=output, start_new_session=True
                )
            except OSError as error:  # it will not start the next time either, but that is for `failures` to say
                report(turn=number, error=str(error))
                return 127, None
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(max(0, min(self.pace.poll, self.end - time.time())))
                    break
                refused = (budget() or {}).get("used_up")
                refused_since = (refused_since or time.time()) if refused else None
                if time.time() >= self.end:
                    ended = "time"
                elif refused_since is not None and time.time() >= refused_since + self.pace.refused:
                    ended = "budget"
                if ended is not None:
                    self.stop()
                    break
        code = self.process.returncode
        code = 128 - code if code < 0 else code or int(_failed(printed))
        report(turn=number, seconds=round(time.time() - began, 1), exit_code=code)
        return code, ended

    def stop(self) -> None:
        """End the command and what it has started, if it is running."""
        if self.process is None:
            return
        for number, seconds in ((signal.SIGTERM, self.pace.grace), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)

    def _pause(self) -> None:
        seconds = min(self.pace.pause * 2 ** (self.failures - 1), self.pace.max_pause_seconds)
        time.sleep(max(0, min(seconds, self.end - time.time())))


def run(command_line: CommandLine, pace: Pace | None = None) -> NoReturn:
    """Run an agent to the end of its session, and exit."""
    session = Session(command_line, pace or Pace())

    def end(number: int, _frame: object) -> NoReturn:
        session.stop()
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    sys.exit(session.run())


def budget() -> dict[str, Any] | None:
    """What the gateway says is left of the budget, and whether it refuses requests; None if it does not answer."""
    url = os.environ.get("OPENAI_BASE_URL") or os.environ.get("ANTHROPIC_BASE_URL", "") + "/v1"
    key = os.environ.get("OPENAI_API_KEY") or os.environ.get("ANTHROPIC_API_KEY", "")
    with contextlib.suppress(OSError, ValueError):  # it may be restarting
        request = urllib.request.Request(f"{url}/budget", headers={"Authorization": f"Bearer {key}"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            found = json.load(answer)
            return found if isinstance(found, dict) else None
    return None


def report(**values: Any) -> None:
    """Print what happened, for the log of the run."""
    print(json.dumps(values), flush=True)


def _files() -> dict[str, tuple[int, int]]:
    """Size and time of change of the files of code and submission."""
    found = {}
    for path in _walk():
        with contextlib.suppress(OSError):
            status = path.stat(follow_symlinks=False)
            found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def _walk() -> Iterator[Path]:
    for top in (CODE, SUBMISSION):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name not in ("__pycache__", ".git")]
            yield from (Path(folder, name) for name in files)


def _failed(printed: Path) -> bool:
    """Whether the last event of a turn says that it failed."""
    with printed.open("rb") as file:
        file.seek(max(0, printed.stat().st_size - 65536))
        *_, last = [b"", *file.read().splitlines()]
    try:
        event = json.loads(last)
    except ValueError:
        return False
    return isinstance(event, dict) and (event.get("type") in FAILED or event.get("is_error") is True)
