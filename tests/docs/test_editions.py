"""docs/known_issues.md lists every known issue, and docs/editions.md names the current version of each edition."""

from __future__ import annotations

from competitions.editions import VERSIONS
from tests.docs.editions import DOCUMENT, update


def test_the_list_of_issues_is_current() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert update(text) == text, "bring docs/known_issues.md up to date: python -m tests.docs.editions"


def test_the_current_versions_are_described() -> None:
    text = (DOCUMENT.parent / "editions.md").read_text("utf-8")
    assert all(f"**{version}**" in text for version in VERSIONS.values())
