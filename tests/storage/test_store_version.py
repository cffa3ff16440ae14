"""A store says which version of the layout it has, and a newer one is refused."""

from __future__ import annotations

import pytest

from storage.store import VERSION, StoreError
from tests.stores import Store


def test_it_is_written_at_the_first_use(store: Store) -> None:
    assert store.require_known_version() is None
    store.require_usable()
    assert store.read_json(store.url("store.json")) == {"version": VERSION} == {"version": 1}
    assert store.require_known_version() == 1


@pytest.mark.parametrize("content", [{"version": VERSION + 1}, {"version": "next"}, ["another form"]])
def test_a_newer_one_is_refused_and_left_as_it_is(store: Store, content: object) -> None:
    store.write_json(store.url("store.json"), content)
    with pytest.raises(StoreError, match=f"this version of mlebench reads up to {VERSION}: update it"):
        store.require_usable()
    assert store.read_json(store.url("store.json")) == content
