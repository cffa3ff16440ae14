"""Which requests servers on this machine refuse, and how logins are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.guard import authorized, basic, names, new_credential, refusal, write_private

KNOWN = names(4200, ["Prefect.example.org", "tunnel:4300"])
OWN = ("Host", "127.0.0.1:4200")
OPENED = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]


@pytest.mark.parametrize(
    "headers",
    [
        [OWN],
        [("host", "LOCALHOST:4200")],
        [("Host", "[::1]:4200")],
        [("Host", "prefect.example.org"), ("Origin", "https://prefect.example.org")],
        [("Host", "tunnel:4300")],
        [OWN, ("Origin", "http://127.0.0.1:4200")],
        [OWN, ("Origin", "http://localhost:4200"), ("Sec-Fetch-Site", "cross-site")],
        [OWN, ("Sec-Fetch-Site", "same-origin")],
        [OWN, ("Sec-Fetch-Site", "none"), *OPENED],
        [OWN, ("Sec-Fetch-Site", "cross-site"), *OPENED],
    ],
)
def test_programs_and_own_pages_are_answered(headers: list[tuple[str, str]]) -> None:
    assert refusal("GET", headers, KNOWN) is None


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [OWN, OWN],
        [("Host", "127.0.0.1")],
        [("Host", "127.0.0.1:4201")],
        [("Host", "evil.test:4200")],
        [("Host", "127.0.0.1.evil.test:4200")],
        [("Host", "localhost:4200@evil.test")],
        [("Host", "tunnel")],
        [OWN, ("Origin", "null")],
        [OWN, ("Origin", "")],
        [OWN, ("Origin", "http://evil.test")],
        [OWN, ("Origin", "http://127.0.0.1:8000")],
        [OWN, ("Origin", "file://127.0.0.1:4200")],
        [OWN, ("Origin", "http://127.0.0.1:4200.evil.test")],
        [OWN, ("Origin", "http://127.0.0.1:4200"), ("Origin", "http://evil.test")],
        [OWN, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")],
        [OWN, ("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")],
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
def test_pages_and_names_of_others_are_refused(method: str, headers: list[tuple[str, str]]) -> None:
    assert refusal(method, headers, KNOWN)


def test_what_another_page_sends_is_refused_even_if_it_opens_a_window() -> None:
    headers = [OWN, ("Sec-Fetch-Site", "cross-site"), *OPENED]
    assert refusal("POST", headers, KNOWN)


def test_only_the_login_is_the_login() -> None:
    login = new_credential()
    assert authorized(basic(login), login)
    for wrong in (None, "", "Basic", basic(""), basic(login + "x"), basic(new_credential()), f"Bearer {login}", "\xe9"):
        assert not authorized(wrong, login), wrong


def test_a_private_file_is_private_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "login"
    path.write_text("of somebody")
    path.chmod(0o644)
    write_private(path, "secret")
    assert (path.read_text(), path.stat().st_mode & 0o777, [*tmp_path.iterdir()]) == ("secret", 0o600, [path])
