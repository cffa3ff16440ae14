from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.backend import Backend, RunSpec
from sandbox.definitions import Agent
from sandbox.errors import BackendError, UntrustedAgentRefused
from sandbox.process.backend import ProcessBackend
from tests.sandbox.conftest import Run
from tests.waiting import until

HANDS_IN = 'echo begun\nprintf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"\n'
WAITS_FOR_GO = 'echo started >>"$LOGS_DIR/starts"; echo waiting\nwhile [ ! -e go ]; do sleep 0.02; done\n'


def test_it_is_a_backend() -> None:
    backend: Backend = ProcessBackend()
    assert backend.name == "process"


def test_a_run_to_its_end(run: Callable) -> None:
    done = run(HANDS_IN + 'echo "work" >"$CODE_DIR/main.py"; echo oops >&2; printf "no newline"')
    result = done.result
    assert (result.status, result.message, result.exit_code) == ("completed", None, 0)
    assert result.submission.read_text() == "id,label\n1,1\n"
    assert (result.code / "main.py").read_text() == "work\n"
    assert done.log == "begun\noops\nno newline"
    assert done.lines == ["begun", "oops", "no newline"]
    assert result.started_at.utcoffset() is not None
    assert result.started_at <= result.finished_at
    assert 0 < result.duration_seconds < 60


def test_the_agent_sees_its_world_and_no_secret(
    run: Callable, backend_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MLEBENCH_SECRET", "AWS_SECRET_ACCESS_KEY", "KAGGLE_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "s3cret")
    # The environment of every process above that it may read, up to the supervisor.
    done = run(
        'env; pwd; tr "\\0" "\\n" </proc/$PPID/environ; ls ..; cat "$DATA_DIR/../private/test.csv" data/images/1.png'
    )
    assert "s3cret" not in done.log
    home = "/home" if backend_name == "rootless" else str(done.home)
    assert f"HOME={home}" in done.lines
    assert home in done.lines
    assert "COMPETITION_ID=competition" in done.lines
    assert "SEED=3" in done.lines
    assert "No such file or directory" in done.log
    assert "pixels" in done.log
    assert "id,label" not in done.log


def test_python_is_the_one_with_the_packages_but_not_the_project(run: Callable) -> None:
    # The project may be installed among the packages; without them (-S) only an inherited path would lead to it.
    done = run(
        '"$MLEBENCH_PYTHON" -c "import numpy; print(numpy.__name__)"\n'
        'cd /; python -S -c "import sandbox.process.backend"'
    )
    assert done.lines[0] == "numpy"
    assert "ModuleNotFoundError" in done.log


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("exit 3", 3, "the agent ended with exit code 3"),
        ("kill -SEGV $$", -11, "SIGSEGV"),
        ("kill -KILL $$", -9, "SIGKILL"),
        ("no_such_command", 127, "exit code 127"),
    ],
)
def test_a_crash_keeps_what_there_is(run: Callable, backend_name: str, script: str, code: int, message: str) -> None:
    done = run(HANDS_IN + script)
    expected_code = (
        128 - code if backend_name == "rootless" and code < 0 else code
    )  # bubblewrap reports it like a shell
    assert (done.result.status, done.result.exit_code) == ("crashed", expected_code)
    assert message in done.result.message
    assert done.result.submission is not None


def test_a_start_file_that_cannot_be_executed_is_a_crash(
    backend: ProcessBackend, backend_name: str, make_spec: Callable[..., RunSpec], make_agent: Callable[..., Agent]
) -> None:
    agent = make_agent("")
    (agent.folder / "start.sh").write_text("#!/no/such/interpreter\n")
    (agent.folder / "start.sh").chmod(0o755)
    result = backend.wait(backend.start(make_spec("", agent=agent)))
    code, message = (1, "bwrap: execvp") if backend_name == "rootless" else (127, "cannot start the agent")
    assert (result.status, result.exit_code) == ("crashed", code)
    assert message in (result.logs / "agent.log").read_text()


def test_writing_nothing_is_said(run: Callable) -> None:
    result = run("true").result
    assert (result.status, result.submission) == ("completed", None)
    assert result.message == "no submission: the agent wrote no submission/submission.csv"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../prepared/private/test.csv", "{prepared}/private/test.csv"])
def test_a_link_as_submission_is_never_followed(run: Callable, prepared: Path, target: str) -> None:
    result = run(f'ln -s "{target.format(prepared=prepared)}" "$SUBMISSION_DIR/submission.csv"').result
    assert result.submission is None
    assert "symbolic link" in result.message
    assert (prepared / "private" / "test.csv").read_text() == "id,label\n1,7\n2,8\n"


def test_untrusted_agents_are_refused_unless_they_are_isolated_or_the_operator_insists(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], make_agent: Callable[..., Agent]
) -> None:
    spec = make_spec("", agent=make_agent(HANDS_IN, trusted=False))
    if backend.capabilities.isolates:
        assert backend.wait(backend.start(spec)).status == "completed"
        return
    with pytest.raises(UntrustedAgentRefused, match="--allow-untrusted"):
        backend.start(spec)
    assert not spec.workdir.exists()
    with ProcessBackend(allow_untrusted=True) as insisting:
        assert insisting.wait(insisting.start(spec)).status == "completed"


def test_a_finished_run_is_found_until_it_is_discarded(
    backend: ProcessBackend, make_backend: Callable[[], ProcessBackend], make_spec: Callable[..., RunSpec]
) -> None:
    spec = make_spec('date +%N >"$SUBMISSION_DIR/submission.csv"')
    first = backend.wait(backend.start(spec))
    with make_backend() as another:
        handle = another.start(spec)
        lines: list[str] = []
        assert handle.attachment == "finished"
        assert another.wait(handle, lines.append) == first
        assert lines == []
        another.discard(handle)
    assert not spec.workdir.exists()
    backend.discard(handle)
    assert backend.start(spec).attachment == "new"


def test_a_changed_agent_does_not_get_the_old_result(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], make_agent: Callable[..., Agent]
) -> None:
    backend.wait(backend.start(make_spec("echo old")))
    handle = backend.start(make_spec("", agent=make_agent("echo new")))
    assert handle.attachment == "new"
    assert (backend.wait(handle).logs / "agent.log").read_text() == "new\n"


def test_starting_twice_is_one_run(
    backend: ProcessBackend,
    make_backend: Callable[[], ProcessBackend],
    make_spec: Callable[..., RunSpec],
    watch: Callable,
) -> None:
    spec = make_spec(WAITS_FOR_GO + HANDS_IN)
    handle = backend.start(spec)
    thread, results = watch(handle, "waiting")
    with make_backend() as another:
        same = another.start(spec)
        assert (same.attachment, same.reference) == ("running", handle.reference)
        lines: list[str] = []
        (spec.workdir / "home" / "go").touch()
        assert another.wait(same, lines.append).status == "completed"
        assert lines == ["begun"]
    thread.join()
    assert results[0].status == "completed"
    assert (results[0].logs / "starts").read_text() == "started\n"


def test_a_work_directory_is_for_one_run(backend: ProcessBackend, make_spec: Callable[..., RunSpec]) -> None:
    spec = make_spec(HANDS_IN)
    backend.wait(backend.start(spec))
    with pytest.raises(BackendError, match="belongs to run run"):
        backend.start(replace(spec, run_id="other"))


def test_stopping_ends_everything_and_the_next_start_begins_anew(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], watch: Callable, living: Callable
) -> None:
    spec = make_spec(HANDS_IN + "sleep 1000 & setsid sleep 1000 & echo waiting; sleep 1000")
    handle = backend.start(spec)
    thread, results = watch(handle, "waiting")
    assert living(handle.workdir)
    backend.stop(handle)
    backend.stop(handle)
    thread.join()
    assert living(handle.workdir) == []
    assert (results[0].status, results[0].message) == ("cancelled", "stopped by the user")
    assert results[0].submission is not None
    again = backend.start(spec)
    assert again.attachment == "new"


def test_closing_the_backend_ends_all_its_runs(
    make_backend: Callable[[], ProcessBackend], make_spec: Callable[..., RunSpec], living: Callable
) -> None:
    with make_backend() as backend:
        handles = [backend.start(make_spec("sleep 1000", run_id=f"run{number}")) for number in range(2)]
        threads = [threading.Thread(target=backend.wait, args=[handle]) for handle in handles]
        for thread in threads:
            thread.start()
    for handle, thread in zip(handles, threads, strict=True):
        thread.join()
        assert living(handle.workdir) == []
    with pytest.raises(BackendError, match="closed"):
        backend.start(make_spec("true", run_id="late"))


def test_a_work_directory_that_cannot_be_made_is_one_clear_line(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackendError, match="cannot be started"):
        backend.start(replace(make_spec("true"), workdir=tmp_path / "file" / "run"))


def test_every_version_of_the_submission_is_kept(backend: ProcessBackend, make_spec: Callable[..., RunSpec]) -> None:
    """Each with its time; half-written ones and links are not."""
    script = """
        for i in 1 2 3; do
            echo "version $i" >next; mv next "$SUBMISSION_DIR/submission.csv"
            echo "written $i"
            while [ ! -e "go$i" ]; do sleep 0.05; done
        done
        rm "$SUBMISSION_DIR/submission.csv"; ln -s /etc/passwd "$SUBMISSION_DIR/submission.csv"; sleep 1.2
    """
    spec = make_spec(script)

    def on_log(line: str) -> None:
        if line.startswith("written"):
            version = line.removeprefix("written ")
            until(lambda: f"version {version}\n" in [path.read_text() for path in spec.workdir.glob("snapshots/*.csv")])
            (spec.workdir / "home" / f"go{version}").touch()

    result = backend.wait(backend.start(spec), on_log)
    assert result.snapshots is not None
    kept = sorted(result.snapshots.iterdir(), key=lambda path: float(path.stem))
    assert [path.read_text() for path in kept] == ["version 1\n", "version 2\n", "version 3\n"]
    assert 0 < float(kept[0].stem) < float(kept[1].stem) < float(kept[2].stem) < result.duration_seconds


def test_the_last_version_is_kept_however_late_it_came(run: Callable) -> None:
    result = run(HANDS_IN).result
    [kept] = result.snapshots.iterdir()
    assert kept.read_text() == result.submission.read_text()


def test_a_run_that_begins_anew_has_no_earlier_versions(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], watch: Callable
) -> None:
    spec = make_spec(HANDS_IN + "echo handed in; sleep 60")
    thread, _ = watch(handle := backend.start(spec), "handed in")
    backend.stop(handle)
    thread.join(120)
    (spec.agent.folder / "start.sh").write_text("true")
    result = backend.wait(backend.start(spec))
    assert result.snapshots is not None
    assert list(result.snapshots.iterdir()) == []


@pytest.mark.parametrize("mask", [0o077, 0o000])
def test_a_run_does_not_depend_on_the_umask(run: Callable[..., Run], mask: int) -> None:
    before = os.umask(mask)
    try:
        done = run('cat "$DATA_DIR/images/1.png" && printf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"')
    finally:
        os.umask(before)
    assert (done.result.status, done.result.message) == ("completed", None), done.log
    assert "pixels" in done.log
