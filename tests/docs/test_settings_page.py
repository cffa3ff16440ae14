"""docs/settings.md has every setting, as `common.settings` has them."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from common.providers import Price, Provider
from common.settings import Settings
from tests.docs.settings import DEPENDENT, DOCUMENT, update

HINT = "bring docs/settings.md up to date: python -m tests.docs.settings"


def test_the_page_of_settings_is_current() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert update(text) == text, HINT
    changed = text.replace("| `MLEBENCH_DOWNLOADS` |", "| `MLEBENCH_LOADS` |")
    assert changed != text
    assert update(changed) == text


@pytest.mark.parametrize("model", [Settings, Provider, Price])
def test_every_setting_is_described(model: type[BaseModel]) -> None:
    assert {name for name, field in model.model_fields.items() if not (field.description or "").endswith(".")} == set()


def test_a_default_that_the_machine_decides_is_told_in_words() -> None:
    """Otherwise the page would state the cores or the home directory of whoever wrote it."""
    factories = {n for n, field in Settings.model_fields.items() if field.default_factory not in (None, list, dict)}
    assert factories == DEPENDENT.keys()
