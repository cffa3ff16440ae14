"""`mlebench build --rootless`, and what du, gc and doctor say about root file systems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from common.settings import get_settings
from flows.cli import cli, main
from flows.diagnosis import health
from sandbox.rootless import roots
from tests.sandbox.rootless.images import archive, docker_save, entry
from tests.stores import Store


def mlebench(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert not result.return_value, result.output
    return result.output


def test_a_root_is_built_listed_and_collected(store: Store, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    made = []
    for number in range(2):
        source = docker_save(tmp_path / f"{number}.tar", [archive(entry("bin/sh"), entry("usr/file", b"%d" % number))])
        output = mlebench("build", "base", "--rootless", "--from", str(source))
        made.append(roots.root_of("mlebench-base", get_settings().scratch))
        assert output == f"built mlebench-base in {made[-1].path}\n"
    listed = map(json.loads, mlebench("du", "--store", store.root, "--json").splitlines())
    assert [(item["name"], item["state"]) for item in listed if item["kind"] == "roots"] == [
        ("mlebench-base", "complete"),
        (made[0].digest[:12], "old"),
    ]
    (made[0].path.parent / "root.json").write_bytes(b"")  # as a machine without power leaves it
    listed = map(json.loads, mlebench("du", "--store", store.root, "--json").splitlines())
    assert {item["name"]: item["state"] for item in listed if item["kind"] == "roots"} == {
        "mlebench-base": "complete",
        made[0].digest[:12]: "damaged",
    }
    assert f"would remove roots {made[0].digest[:12]}" in mlebench(
        "gc", "--orphans", "--dry-run", "--store", store.root
    )
    assert f"removed roots {made[0].digest[:12]}" in mlebench("gc", "--orphans", "--store", store.root)
    assert [root.path.exists() for root in made] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "x"], "--from needs --rootless"),
        (["--rootless", "--from", "x", "--trusted"], "leave out --base, --build-arg and --trusted"),
        (["--rootless", "--from", "/nowhere/x.tar"], "/nowhere/x.tar does not exist: --from takes docker://IMAGE"),
    ],
)
def test_wrong_uses_are_told_in_a_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "base", *arguments]) == (1 if "/nowhere" in message else 2)
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_doctor_says_whether_agents_can_be_isolated_and_what_limits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = health.check_rootless()
    assert found.about == "rootless"
    assert "memory by" in found.message or found.remedy
    monkeypatch.setenv("PATH", "/nowhere")
    found = health.check_rootless()
    assert (found.verdict, found.message) == ("warn", "--backend rootless cannot run: bubblewrap is not installed")
