"""Credentials: found in each of their places, shown in none; and what the account may have."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from competitions import registry
from storage.sources.kaggle import Access, Kaggle, access, errors
from storage.sources.kaggle.credentials import find, redact
from tests.kaggle_server import Fault, KaggleServer
from tests.kaggle_server.server import RULES

IDS = ["leaf-classification", "spaceship-titanic", "aerial-cactus-identification"]


@pytest.fixture
def served(kaggle: KaggleServer) -> KaggleServer:
    kaggle.archives.update(dict.fromkeys(IDS, b"x" * 1000))
    return kaggle


def test_access_is_told_without_a_download(served: KaggleServer) -> None:
    served.refused.update({IDS[0]: RULES, IDS[1]: "Phone verification is required"})
    rules, refused, fine, unknown, bundled = access([*IDS, "no-such-competition", "digits"])
    assert (rules.state, rules.page) == ("rules", f"https://www.kaggle.com/competitions/{IDS[0]}/rules")
    assert (refused.state, "Phone verification" in refused.message) == ("refused", True)
    assert fine == Access(IDS[2], "ok")
    assert unknown.state == "unknown"
    assert bundled == Access("digits", "ok", "generated from installed libraries")
    assert not served.asked("storage")


def test_access_without_credentials_asks_nothing(served: KaggleServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAGGLE_API_TOKEN")
    (answer,) = access(IDS[:1])
    assert answer.state == "no credentials"
    assert all(way in answer.message for way in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME and KAGGLE_KEY", "kaggle.json"))
    assert not served.requests


def test_access_with_wrong_credentials_and_without_a_network(
    served: KaggleServer, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    served.faults[IDS[0]].extend([Fault("api", 503)] * 3)
    assert access(IDS[:1])[0].state == "unreachable"
    monkeypatch.setenv("KAGGLE_API_TOKEN", "wrong")
    assert access(IDS[:1])[0].state == "no credentials"


def test_the_clients_test_environment_is_port_7777(tmp_path: Path) -> None:
    """Without the fixture's free port: what the client does on its own when KAGGLE_API_ENVIRONMENT is TEST."""
    try:
        server = KaggleServer(port=7777)
    except OSError as error:
        pytest.skip(f"port 7777 of this machine is taken: {error}")
    try:
        server.archives[IDS[0]] = b"x"
        code = f"from storage.sources.kaggle import access; print(access([{IDS[0]!r}])[0].state)"
        result = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={
                "HOME": str(tmp_path),
                "PATH": "/usr/bin:/bin",
                "KAGGLE_API_ENVIRONMENT": "TEST",
                "KAGGLE_API_TOKEN": server.token,
            },
            cwd=Path(__file__).parents[4],
        )
        assert (result.stdout, result.stderr) == ("ok\n", "")
        assert len(server.asked("api", "DownloadDataFiles")) == 1
    finally:
        server.close()


@pytest.mark.parametrize("place", ["token", "token file", "variables", "kaggle.json", "config dir", "login"])
def test_credentials_are_found_where_the_client_finds_them(
    served: KaggleServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    monkeypatch.delenv("KAGGLE_API_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".kaggle"
    folder.mkdir()
    pair = {"username": served.username, "key": served.key}
    if place == "token":
        monkeypatch.setenv("KAGGLE_API_TOKEN", served.token)
    elif place == "token file":
        (folder / "access_token").write_text(served.token)
    elif place == "variables":
        monkeypatch.setenv("KAGGLE_USERNAME", served.username)
        monkeypatch.setenv("KAGGLE_KEY", served.key)
    elif place == "kaggle.json":
        (folder / "kaggle.json").write_text(json.dumps(pair))
    elif place == "config dir":
        monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path / "elsewhere"))
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "kaggle.json").write_text(json.dumps(pair))
    else:
        login = {
            "refresh_token": "r",
            "access_token": served.token,
            "access_token_expiration": "2100-01-01T00:00:00+00:00",
        }
        (folder / "credentials.json").write_text(json.dumps(login))
    assert access(IDS[:1])[0].state == "ok"


def test_credentials_do_not_show_and_a_long_token_is_no_file_name(monkeypatch: pytest.MonkeyPatch) -> None:
    token = "secret-" + "x" * 5000
    monkeypatch.setenv("KAGGLE_API_TOKEN", token)
    found = find()
    assert found is not None
    assert found.token is not None
    assert found.token.get_secret_value() == token
    assert "secret-" not in repr(found) + str(found)
    assert redact(f"failed with {token}") == "failed with ***"


def test_secrets_are_in_no_message_traceback_or_log(
    served: KaggleServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    waits: list[float],
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    leaf, shown = registry.get(IDS[0]), ""
    # The server repeats what it was sent, as some do; and the signed address goes into the errors of requests.
    echo = f"bad Authorization: Bearer {served.token} for ?Signature=planted-signature-5d0e"
    for faults in (
        [Fault("api", 403, echo)],
        [Fault("api", 500, echo)] * 8,
        [Fault("api", 400, echo)],
        [Fault("storage", close=True)] * 8,
        [Fault("storage", 403, echo)],
        [Fault("storage", 404)],
    ):
        served.faults[IDS[0]].clear()
        served.faults[IDS[0]].extend(faults)
        with pytest.raises(errors.KaggleError) as caught:
            Kaggle().fetch(leaf, tmp_path, told.append)
        shown += "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    out, err = capfd.readouterr()
    shown += out + err + caplog.text + "".join(told)
    assert "urllib3" in caplog.text, "the test sees what is logged"
    for secret in (served.token, served.key, "planted-signature"):
        assert secret not in shown


def test_credentials_stay_with_kaggle(served: KaggleServer, tmp_path: Path) -> None:
    Kaggle().fetch(registry.get(IDS[0]), tmp_path)
    assert all("Authorization" in request.headers for request in served.asked("api"))
    assert served.asked("storage")
    assert not any("Authorization" in request.headers for request in served.asked("storage"))


def test_without_credentials_the_process_lives_and_nothing_is_printed(tmp_path: Path) -> None:
    code = (
        "from storage.sources.kaggle import access; assert access(['spaceship-titanic'])[0].state == 'no credentials'"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=Path(__file__).parents[4],
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir()), "nothing is made in the home directory"
