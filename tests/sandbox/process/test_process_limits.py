from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from sandbox.limits import MIB
from sandbox.process.backend import ProcessBackend
from sandbox.rootless.limits import delegated, enforcement

HANDS_IN = 'printf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"\n'
DOUBLE_FORK = """\
import os, signal, time
for number in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.closerange(0, 3)
            while True:
                time.sleep(1000)
        os._exit(0)
"""
FORK_BOMB = """\
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
generation = 0
while generation < 10:  # 1024 processes at most, should nobody stop it
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
    generation += 1
while True:
    signal.pause()
"""


FOREVER = "import time; time.sleep(1000)"


def python(code: str) -> str:
    return f"exec \"$MLEBENCH_PYTHON\" - <<'PYTHON'\n{code}\nPYTHON\n"


def test_an_agent_that_hangs_is_ended_and_its_submission_kept(run: Callable) -> None:
    result = run(HANDS_IN + "sleep 1000", time_limit_seconds=0.5).result
    assert (result.status, result.exit_code) == ("timeout", None)
    assert result.message == "the time limit of 0.5 seconds was reached"
    assert result.submission is not None


def test_the_grace_period_is_for_finishing_the_submission(run: Callable) -> None:
    script = "trap '" + HANDS_IN.strip() + "; exit 0' TERM\necho ready\nwhile true; do sleep 0.05; done"
    done = run(script, time_limit_seconds=1, grace_seconds=20)
    assert done.result.status == "timeout"
    assert done.result.submission is not None
    assert done.result.duration_seconds < 20


def test_ignoring_sigterm_does_not_help(run: Callable) -> None:
    result = run(HANDS_IN + "trap '' TERM\nwhile true; do sleep 1; done", time_limit_seconds=0.5).result
    assert result.status == "timeout"
    assert result.submission is not None


def test_what_is_left_in_the_background_ends_with_the_agent(run: Callable) -> None:
    assert run("sleep 1000 & (setsid sleep 1000 &) ; nohup sleep 1000 >/dev/null 2>&1 &").result.status == "completed"


def test_forking_twice_is_no_way_out(run: Callable) -> None:
    assert run(HANDS_IN + python(DOUBLE_FORK)).result.status == "completed"


def test_forking_twice_is_no_way_out_of_the_time_limit(run: Callable) -> None:
    result = run(HANDS_IN + python(DOUBLE_FORK + "time.sleep(1000)"), time_limit_seconds=1).result
    assert result.status == "timeout"


def test_a_fork_bomb_is_ended(run: Callable, backend_name: str) -> None:
    """Or the kernel refuses the processes that are too many, and the agent goes on."""
    refused = backend_name == "rootless" and enforcement(delegated())["processes"] != "watched"
    result = run(HANDS_IN + python(FORK_BOMB), processes=50, time_limit_seconds=3 if refused else 60).result
    assert result.status == ("timeout" if refused else "processes")
    message = "the time limit of 3 seconds was reached" if refused else "more than 50 processes at once"
    assert result.message == message
    assert result.submission is not None


def test_memory_is_limited_in_all_processes_together(run: Callable) -> None:
    one = python(f"block = b'x' * {100 * MIB}\nimport time; time.sleep(1000)").replace("exec ", "").rstrip("\n")
    script = HANDS_IN + "\n".join(f"hog{n}() {{\n{one}\n}}\nhog{n} &" for n in range(3)) + "\nwait\n"
    result = run(script, memory_bytes=200 * MIB).result
    assert result.status == "memory"
    assert result.message == "more memory than the limit of 200 MiB"
    assert result.submission is not None


def test_memory_that_processes_share_counts_once(run: Callable) -> None:
    code = f"""
import os
block = b'x' * {100 * MIB}
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        import time
        time.sleep(0.5)
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
"""
    assert run(HANDS_IN + python(code), memory_bytes=250 * MIB).result.status == "completed"


@pytest.mark.parametrize(
    "code",
    [
        f"open('one', 'wb').write(b'x' * {20 * MIB})",
        "from pathlib import Path\nfor n in range(100): Path(str(n)).write_bytes(b'x' * 2**20)\n" + FOREVER,
        "from pathlib import Path\nfor n in range(9000): Path('tmp', str(n)).touch()\n" + FOREVER,
    ],
    ids=["one large file", "many files", "many empty files"],
)
def test_disk_use_is_limited(run: Callable, code: str) -> None:
    result = run(HANDS_IN + python(code), disk_bytes=4 * MIB).result
    assert result.status == "disk"
    assert result.message == "more on disk than the limit of 4 MiB"
    assert result.submission is not None


def test_the_log_is_limited(run: Callable) -> None:
    done = run("echo first; yes | head -c 50000000; echo last", log_bytes=MIB)
    assert done.result.status == "completed"
    assert done.log.startswith("first\n")
    assert done.log.endswith("last\n")
    assert "bytes left out: the log is full" in done.log
    assert (done.result.logs / "agent.log").stat().st_size < 1.1 * MIB


def test_a_flood_of_output_does_not_keep_the_time_limit_off(run: Callable) -> None:
    done = run("trap '' TERM\nyes", time_limit_seconds=0.5)
    assert done.result.status == "timeout"


def test_output_that_is_no_text_is_kept_as_it_is(run: Callable) -> None:
    done = run("printf 'a\\377b\\n'; head -c 300000 /dev/zero")
    assert (done.result.logs / "agent.log").read_bytes() == b"a\xffb\n" + bytes(300000)
    assert done.lines[0] == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot choose cores")
def test_cores_are_limited(run: Callable) -> None:
    code = "import os; print(len(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])"
    assert run(python(code), cpus=1).lines == ["1 1"]


def test_no_core_is_dumped(run: Callable) -> None:
    assert run("ulimit -c").lines == ["0"]


def test_a_tree_deeper_than_paths_can_name_does_no_harm(run: Callable, backend: ProcessBackend) -> None:
    code = """
import os
os.chdir("code")
for _ in range(1500):
    os.mkdir("deep" * 10)
    os.chdir("deep" * 10)
open("file", "w")
"""
    done = run(HANDS_IN + python(code))
    assert done.result.status == "completed"
    assert done.result.submission is not None
    backend.discard(done.handle)
    assert not done.handle.workdir.exists()
