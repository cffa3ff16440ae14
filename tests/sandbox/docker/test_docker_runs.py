"""What an agent in a container may use, and how its run ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox.backend import Backend, RunSpec
from sandbox.docker.backend import DockerBackend
from sandbox.limits import MIB
from tests.sandbox.docker.conftest import Run, Waiting, remains_of

HANDS_IN = 'echo begun\nprintf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"\n'


def test_it_is_a_backend(docker_backend: DockerBackend) -> None:
    backend: Backend = docker_backend
    assert backend.name == "docker"


def test_a_run_to_its_end(run: Callable[..., Run]) -> None:
    done = run(HANDS_IN + 'echo "work" >"$CODE_DIR/main.py"; echo oops >&2; printf "no newline"')
    result = done.result
    assert (result.status, result.message, result.exit_code) == ("completed", None, 0)
    assert result.submission is not None
    assert result.submission.read_text() == "id,label\n1,1\n"
    assert (result.code / "main.py").read_text() == "work\n"
    assert sorted(done.lines) == ["begun", "no newline", "oops"]
    assert sorted(done.log.split("\n")) == ["begun", "no newline", "oops"]
    assert result.started_at <= result.finished_at
    assert result.image is not None
    assert result.image.startswith("sha256:")


def test_the_published_world(run: Callable[..., Run]) -> None:
    done = run("pwd; ls -d /home/*; cat /home/instructions.txt; env; cat /home/data/images/1.png; id -u; id -g")
    assert done.lines[0] == "/home"
    for name in ("agent", "code", "data", "instructions.txt", "logs", "submission"):
        assert f"/home/{name}" in done.lines
    assert "  /home/submission/submission.csv" in done.lines
    assert "COMPETITION_ID=competition" in done.lines
    assert "SEED=3" in done.lines
    assert "pixels" in done.log
    assert "0" not in done.lines[-2:]


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [("exit 3", 3, "exit code 3"), ("kill -SEGV $$", 139, "SIGSEGV"), ("no_such_command", 127, "exit code 127")],
)
def test_a_crash_keeps_what_there_is(run: Callable[..., Run], script: str, code: int, message: str) -> None:
    result = run(HANDS_IN + script).result
    assert (result.status, result.exit_code) == ("crashed", code)
    assert message in str(result.message)
    assert result.submission is not None


def test_time_is_counted_from_the_start_and_sigterm_may_be_ignored(run: Callable[..., Run]) -> None:
    began = time.monotonic()
    done = run(HANDS_IN + "trap '' TERM; while :; do sleep 0.1; done", time_limit_seconds=2, grace_seconds=1)
    assert (done.result.status, done.result.exit_code) == ("timeout", None)
    assert "time limit of 2 seconds was reached" in str(done.result.message)
    assert done.result.submission is not None
    assert 3 <= done.result.duration_seconds < 10
    assert time.monotonic() - began < 40


def test_what_may_be_meant_as_the_submission_is_kept(run: Callable[..., Run]) -> None:
    script = (
        "echo id >/tmp/submission.csv; mkdir /home/out; echo id >/home/out/final; "
        'ln -s /home/out/final "$SUBMISSION_DIR/submission.csv"; ln -s /etc/passwd /home/submission.csv'
    )
    result = run(script).result
    assert result.submission is None
    assert result.misplaced is not None
    kept = {path.relative_to(result.misplaced).as_posix() for path in result.misplaced.rglob("*") if path.is_file()}
    assert kept == {"out/final", "tmp/submission.csv"}
    assert str(result.message).endswith("kept in misplaced/ of the run: out/final, tmp/submission.csv")


def test_what_is_written_in_the_grace_period_counts(run: Callable[..., Run]) -> None:
    script = "trap 'echo late >\"$SUBMISSION_DIR/submission.csv\"; exit 0' TERM; while :; do sleep 0.1; done"
    result = run(script, time_limit_seconds=1, grace_seconds=10).result
    assert result.status == "timeout"
    assert result.submission is not None
    assert result.submission.read_text() == "late\n"
    assert result.duration_seconds < 8


def test_memory_is_limited(run: Callable[..., Run]) -> None:
    result = run(HANDS_IN + 'exec python3 -c "x = bytearray(600 << 20)"', memory_bytes=200 * MIB).result
    assert (result.status, result.message) == ("memory", "more memory than the limit of 200 MiB")
    assert result.submission is not None


def test_the_disk_is_limited(run: Callable[..., Run]) -> None:
    script = HANDS_IN + 'i=0; while :; do head -c 4000000 /dev/zero >"$TMPDIR/$i" && i=$((i+1)); sleep 0.02; done'
    result = run(script, disk_bytes=40 * MIB, time_limit_seconds=60).result
    assert (result.status, result.message) == ("disk", "more on disk than the limit of 40 MiB")
    assert result.submission is not None


def test_no_single_file_is_larger_than_the_disk_limit(run: Callable[..., Run]) -> None:
    done = run("head -c 200000000 /dev/zero >big; ls -l big; rm big", disk_bytes=20 * MIB)
    assert f" {20 * MIB} " in done.log


def test_shared_memory_is_limited(run: Callable[..., Run]) -> None:
    done = run("head -c 30000000 /dev/zero >/dev/shm/x; stat -c %s /dev/shm/x", shm_bytes=10 * MIB)
    assert str(10 * MIB) in done.lines


def test_a_fork_bomb_stays_in_its_container(run: Callable[..., Run]) -> None:
    done = run(HANDS_IN + "f() { f | f & }; f; sleep 60", processes=50, time_limit_seconds=4, grace_seconds=1)
    assert done.result.status in ("timeout", "crashed")
    assert done.result.submission is not None


def test_a_flood_of_output_is_capped(run: Callable[..., Run]) -> None:
    done = run("echo first; yes 0123456789012345678901234567890123456789 | head -c 8000000; echo last", log_bytes=MIB)
    assert done.result.status == "completed"
    assert len(done.log) < 1.2 * MIB
    assert done.log.startswith("first\n")
    assert done.log.endswith("last\n")
    assert "bytes left out: the log is full" in done.log


@pytest.mark.parametrize("target", ["/etc/passwd", "/home/data/sample_submission.csv", "../../../control/task.json"])
def test_a_link_as_submission_is_never_followed(run: Callable[..., Run], target: str) -> None:
    result = run(f'ln -s "{target}" "$SUBMISSION_DIR/submission.csv"').result
    assert result.submission is None
    assert "symbolic link" in str(result.message)


def test_links_to_the_host_are_not_collected(run: Callable[..., Run]) -> None:
    done = run(
        "rm -rf submission logs; ln -s /etc submission; ln -s /root logs\n"
        "ln -s /etc/shadow code/shadow; mkfifo code/pipe"
    )
    assert done.result.submission is None
    assert [path.name for path in done.result.logs.iterdir()] == ["agent.log"]
    assert list(done.result.code.iterdir()) == []


def test_every_version_of_the_submission_is_kept(run: Callable[..., Run]) -> None:
    script = """
        for i in 1 2 3; do echo "version $i" >$SUBMISSION_DIR/submission.csv; sleep 2.5; done
        echo same >other; rm $SUBMISSION_DIR/submission.csv; ln -s /etc/passwd $SUBMISSION_DIR/submission.csv; sleep 1
    """
    result = run(script).result
    assert result.snapshots is not None
    kept = sorted(result.snapshots.iterdir(), key=lambda path: float(path.stem))
    assert [path.read_text() for path in kept] == ["version 1\n", "version 2\n", "version 3\n"]
    assert float(kept[0].stem) < float(kept[1].stem) < float(kept[2].stem)


def test_a_run_is_stopped(docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]) -> None:
    spec = docker_spec(HANDS_IN + "sleep 60")
    handle = docker_backend.start(spec)
    waiting = Waiting(docker_backend, handle)
    waiting.until("begun")
    docker_backend.stop(handle)
    assert waiting.result().status == "cancelled"
    assert remains_of(handle.workdir) == []
    again = docker_backend.start(spec)
    assert again.attachment == "new"
    docker_backend.close()


def test_a_finished_run_is_found_until_it_is_discarded(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    spec = docker_spec(HANDS_IN)
    first = docker_backend.wait(docker_backend.start(spec))
    handle = docker_backend.start(spec)
    assert handle.attachment == "finished"
    assert docker_backend.wait(handle) == first
    docker_backend.discard(handle)
    assert not spec.workdir.exists()
    assert docker_backend.start(spec).attachment == "new"


def test_arguments_reach_the_start_file(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], make_agent: Callable
) -> None:
    spec = replace(docker_spec(""), agent=make_agent('echo "$#: $*"', kwargs={"steps": 5, "fast": True}))
    result = docker_backend.wait(docker_backend.start(spec))
    assert (result.logs / "agent.log").read_text() == "4: --fast true --steps 5\n"


@pytest.mark.parametrize("mask", [0o077, 0o000])
def test_a_run_does_not_depend_on_the_umask(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], mask: int
) -> None:
    """Root's umask also applied when the data were prepared."""
    script = 'cat /home/data/images/1.png /home/instructions.txt && echo "x" >"$CODE_DIR/main.py" && ' + HANDS_IN
    spec = docker_spec(script)
    if mask:
        for path in [spec.data, *spec.data.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)
    above = spec.data.parent.stat().st_mode
    before = os.umask(mask)
    try:
        handle = docker_backend.start(spec)
        result = docker_backend.wait(handle)
    finally:
        os.umask(before)
    log = (result.logs / "agent.log").read_text()
    assert (result.status, result.message) == ("completed", None), log
    assert "pixels" in log
    assert result.submission is not None
    assert spec.data.parent.stat().st_mode == above
