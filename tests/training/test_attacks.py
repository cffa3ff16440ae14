"""What an agent may attempt in an episode that it cannot in a run. Each test has a row in docs/security.md."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import UserError
from tests.training.conftest import DOCKER, SAMPLE, act, run
from training.datasets import Judgement
from training.episode import Episode
from training.episodes import Episodes

pytestmark = pytest.mark.service("docker")


@pytest.fixture
def episode(make_episodes: Callable[..., Episodes]) -> Episode:
    return make_episodes(isolation=DOCKER).begin().episode


def test_the_answers_the_token_and_the_network(episode: Episode) -> None:
    assert run(episode, "find / -path '*/private/*' -name '*.csv' 2>/dev/null") == ""
    assert act(episode, "read", path="data/../../private/answers.csv").observation.content is None
    environments = "cat /proc/*/environ /proc/*/cmdline 2>/dev/null"
    assert run(episode, f"{environments} | tr '\\0' '\\n' | grep -ci '[t]oken'") == "0\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        refused = act(episode, "run", command=f'$MLEBENCH_PYTHON -c "{connect}"').observation
        assert "Connection refused" in str(refused.stderr)
    assert run(episode, "ls /sys/class/net") == "lo\n"
    assert run(episode, "touch data/train.csv data/new instructions.txt 2>&1 | wc -l") == "3\n"


def test_links_out_of_the_home(episode: Episode, tmp_path: Path) -> None:
    (secret := tmp_path / "secret").write_text("secret")
    run(episode, f"ln -s {secret} code/file; ln -s {tmp_path} code/folder; mkfifo code/pipe; ln -s / tmp/root")
    for path in ("code/file", "code/folder/secret", "code/pipe", "tmp/root/etc/passwd"):
        assert act(episode, "read", path=path).observation.content is None
    act(episode, "write", path="code/folder/secret", content="changed")
    act(episode, "write", path="code/file", content="changed")
    assert secret.read_text() == "secret"
    assert run(episode, "cat code/file; test -L code/file || echo file") == "changedfile\n"
    assert list(tmp_path.iterdir()) == [secret]
    run(episode, "rm -rf submission/submission.csv; ln -s /home/data/sample_submission.csv submission/submission.csv")
    assert "symbolic link" in act(episode, "check").observation.message
    step = act(episode, "submit")
    assert (step.reward, step.observation.info["valid"]) == (0.0, False)


def test_a_submission_exchanged_after_it_was_submitted(
    make_episodes: Callable[..., Episodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = make_episodes(isolation=DOCKER).begin().episode
    run(episode, SAMPLE)
    judge = episode.dataset.judge

    def exchange_first(submission: Path) -> Judgement:
        episode._sandbox.run("echo wrong > submission/submission.csv", 20, 1000)
        return judge(submission)

    monkeypatch.setattr(episode.dataset, "judge", exchange_first)
    assert act(episode, "submit").observation.info["valid"]
    with pytest.raises(UserError, match="has ended"):
        act(episode, "submit")


def test_output_memory_and_processes_without_end(episode: Episode) -> None:
    flood = act(episode, "run", command="yes", seconds=1).observation
    assert flood.cut
    assert len(str(flood.stdout)) < 25_000
    memory = act(episode, "run", command='$MLEBENCH_PYTHON -c "x = bytearray(3 << 30)"', seconds=60).observation
    assert memory.exit_code != 0
    forks = "for i in $(seq 400); do sleep 5 & done; wait"
    assert "Resource temporarily unavailable" in str(act(episode, "run", command=forks, seconds=30).observation.stderr)
    assert run(episode, "sleep 6; echo on") == "on\n"
