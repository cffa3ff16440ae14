"""Commands on a store that a newer version of mlebench has written: one line says what to do."""

from __future__ import annotations

import pytest

from flows.cli import main
from storage.store import VERSION
from tests.stores import Store


@pytest.mark.parametrize("command", [["ls"], ["show", "a/b/0"], ["run", "-c", "digits", "--agent", "dummy"]])
def test_they_say_so_in_one_line(store: Store, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    store.write_json(store.url("store.json"), {"version": VERSION + 1})
    assert main([*command, "--store", store.root]) == 1
    said = f"store {store.root} has version {VERSION + 1}; this version of mlebench reads up to {VERSION}: update it"
    assert capsys.readouterr().err.splitlines() == [f"mlebench: {said}"]
