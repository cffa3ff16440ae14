"""The loop that keeps command line agents working, with scripts in the place of an agent, in real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sandbox.definitions import SHARED
from tests.waiting import until

# An agent that keeps the messages it gets, and then does what the next line of its script says.
AGENT = """
import os, pathlib, sys
logs = pathlib.Path(os.environ["LOGS_DIR"])
said = logs / "said"
said.mkdir(exist_ok=True)
turn = len(list(said.iterdir()))
(said / f"{turn:02}").write_text("\\n".join(sys.argv[1:]))
script = (logs.parent / "script").read_text().splitlines()
if sys.argv[1] == "first" and script[turn] != "raise SystemExit(3)":
    (logs / "session" / "native").touch()
exec(script[min(turn, len(script) - 1)])
"""
LOOP = """
import os, sys
from continuing import CommandLine, Pace, run
agent = [os.environ.get("COMMAND", sys.executable), sys.argv[1]]
run(
    CommandLine(lambda text: [*agent, "first", text], lambda text: [*agent, "again", text], "native"),
    Pace(**{"pause": 0.01, "poll": 0.05, "refused": 0.1, "grace": 0.2, **eval(sys.argv[2])}),
)
"""
WORK = "open(os.environ['CODE_DIR'] + '/solution.py', 'a').write('x')"


@dataclass
class Loop:
    """One run of the loop."""

    folder: Path
    env: dict[str, str]
    ends: list[int] = field(default_factory=list)

    def start(self, *script: str, limit: float = 3600, pace: str = "{}", **env: str) -> subprocess.Popen[str]:
        for name in ("logs", "code", "submission"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "script").write_text("\n".join(script))
        (self.folder / "agent.py").write_text(AGENT)
        (self.folder / "instructions.txt").write_text("Predict the digits.\n")
        folders = {f"{name.upper()}_DIR": str(self.folder / name) for name in ("logs", "code", "submission")}
        known = {"INSTRUCTIONS_FILE": str(self.folder / "instructions.txt"), "TIME_LIMIT_SECONDS": str(limit)}
        return subprocess.Popen(
            [sys.executable, "-c", LOOP, str(self.folder / "agent.py"), pace],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SHARED), **self.env, **folders, **known, **env},
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *script: str, **options: Any) -> tuple[int, list[dict[str, Any]], list[str]]:
        """Exit code, what it reports, and the messages that the agent got."""
        process = self.start(*script, **options)
        output, _ = process.communicate(timeout=60)
        return process.returncode, [json.loads(line) for line in output.splitlines()], self.said()

    def said(self) -> list[str]:
        return [path.read_text() for path in sorted((self.folder / "logs" / "said").iterdir())]


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path, {})


@pytest.fixture
def budget(loop: Loop) -> Iterator[Callable[[bool], None]]:
    """A gateway that says what is left; call it to say whether the budget is used up."""
    state = {"left": {"requests": 7, "tokens": None, "dollars": 1.5}, "used_up": False}

    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = (self.path, self.headers["authorization"]) == ("/v1/budget", "Bearer token")
            self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write(json.dumps(state).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    loop.env |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1", "OPENAI_API_KEY": "token"}
    yield lambda used_up: state.update(used_up=used_up)
    server.shutdown()
    server.server_close()


def test_it_ends_when_the_agent_insists_three_times_in_a_row(loop: Loop) -> None:
    code, reports, said = loop.run(WORK, "pass", "pass", WORK, "pass")
    assert (code, reports[-1]) == (0, {"ended": "insists"})
    assert [text.split("\n")[0] for text in said] == ["first"] + ["again"] * 6
    assert "Predict the digits." in said[0]
    assert ["one more such answer" in text for text in said] == [False, False, False, True, False, False, True]
    assert all("You have 59 minutes left, until" in text for text in said), "of an hour, 72 seconds are kept in reserve"
    assert len(list((loop.folder / "logs" / "turns").iterdir())) == 7


def test_after_an_error_the_session_goes_on(loop: Loop) -> None:
    code, reports, said = loop.run(WORK, "raise SystemExit(7)", "os.kill(os.getpid(), 9)", WORK, "pass")
    assert code == 0
    assert [each["exit_code"] for each in reports[:-1]] == [0, 7, 137, 0, 0, 0, 0]
    assert "interrupted by an error" in said[2]
    assert "interrupted by an error" in said[3]
    assert "You stopped" in said[4]


def test_errors_do_not_count_as_insisting(loop: Loop) -> None:
    failed = """print('{"type": "result", "is_error": true}')"""
    code, reports, said = loop.run(WORK, "pass", "pass", failed, "pass")
    assert (code, reports[-1]["ended"], len(said)) == (0, "insists", 7)
    assert reports[3]["exit_code"] == 1


def test_too_many_errors_end_it_with_the_exit_code_of_the_agent(loop: Loop) -> None:
    code, reports, said = loop.run(WORK, "raise SystemExit(7)", pace="{'failures': 5}")
    assert (code, reports[-1]) == (7, {"ended": "errors"})
    # The session that cannot be continued is given up once.
    assert [text.split("\n")[0] for text in said] == ["first", "again", "again", "again", "first", "again"]
    assert "An earlier session of yours was lost" in said[4]


def test_without_a_session_it_begins_again(loop: Loop) -> None:
    _, _, said = loop.run("raise SystemExit(3)", WORK, "pass")
    assert [text.split("\n")[0] for text in said][:3] == ["first", "first", "again"]


def test_an_agent_that_is_not_there_fails(loop: Loop) -> None:
    process = loop.start(COMMAND="/missing", pace="{'failures': 2}")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 127
    assert "/missing" in output


def test_it_ends_before_the_time_limit(loop: Loop) -> None:
    # Of 16 seconds, 15 are kept in reserve.
    hang = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
    code, reports, said = loop.run(hang, limit=16)
    assert (code, reports[-1], len(said)) == (0, {"ended": "time"}, 1)


def test_it_ends_when_the_budget_is_used_up(loop: Loop, budget: Callable[[bool], None]) -> None:
    process = loop.start(WORK, "import time; time.sleep(1000)  # a client that tries again and again")
    until(lambda: (loop.folder / "logs" / "said" / "01").exists())
    budget(True)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(output.splitlines()[-1]) == {"ended": "budget"}
    assert "Of your budget for language models, 7 requests, 1.5 dollars are left." in loop.said()[0]


def test_no_turn_begins_without_budget(loop: Loop, budget: Callable[[bool], None]) -> None:
    budget(True)
    process = loop.start(WORK)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, '{"ended": "budget"}\n')


def test_a_resumed_run_continues_the_session_that_was_restored(loop: Loop) -> None:
    (loop.folder / "logs" / "session").mkdir(parents=True)
    (loop.folder / "logs" / "session" / "native").touch()
    _, _, said = loop.run("pass", MLEBENCH_RESUMED="1")
    assert said[0].startswith("again")
    assert "continues on another machine" in said[0]


def test_a_resumed_run_whose_session_was_not_restored_begins_anew(loop: Loop) -> None:
    _, _, said = loop.run("pass", MLEBENCH_RESUMED="1")
    assert said[0].startswith("first")
    assert "An earlier session of yours was lost" in said[0]


def test_it_ends_the_agent_when_it_is_ended(loop: Loop) -> None:
    process = loop.start("import time; print(os.getpid(), flush=True); time.sleep(1000)")
    printed = loop.folder / "logs" / "turns" / "001.jsonl"
    until(lambda: printed.exists() and printed.read_text().endswith("\n"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(printed.read_text()), 0)


def test_using_up_the_budget_in_one_turn_is_no_failure(loop: Loop, budget: Callable[[bool], None]) -> None:
    until_told = "import time; any(time.sleep(0.01) for _ in iter(lambda: (logs / 'go').exists(), True))"
    process = loop.start(f"{until_told}; raise SystemExit(1)")
    until(lambda: (loop.folder / "logs" / "said" / "00").exists())
    budget(True)
    (loop.folder / "logs" / "go").touch()
    output, _ = process.communicate(timeout=60)
    assert [json.loads(line).get("exit_code", 1) for line in output.splitlines()] == [1, 1]
    assert json.loads(output.splitlines()[-1]) == {"ended": "budget"}
    assert process.returncode == 0
