"""The manifest of a run group: forged entries are findings, and a key that is set later vouches for what was before."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from storage.runs.evidence.group_manifest import append, compare_manifest, read_manifest
from storage.runs.evidence.signatures import canonical
from storage.runs.evidence.verify import verify_group
from tests.stores import Store

KEY = "the operator's"
RUN = {"run": "diabetes/0", "head": "a" * 64}
PLAN: dict[str, Any] = {"competitions": ["diabetes"], "seeds": 1}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(str(tmp_path / "store"))
    append(store, "g", None, "planned", **PLAN)
    append(store, "g", None, "recorded", **RUN)
    return store


FORGED: list[Any] = [
    *({"kind": "planned", **plan} for plan in ({}, {"seeds": 1}, {"competitions": 3, "seeds": 1})),
    *({"kind": "planned", "competitions": ["a"], "seeds": seeds} for seeds in (None, "1", -1, 10**15, [1])),
    {"kind": "planned", "competitions": ["a"], "seed_numbers": 3},
    {"kind": "present", "runs": [1, 2]},
    {"kind": "recorded", "run": {"a": 1}, "head": []},
    {"kind": "overwritten", "run": "diabetes/0", "differs": 3},
    [1],
    None,
]


@pytest.mark.parametrize("forged", FORGED, ids=json.dumps)
def test_a_forged_entry_is_a_finding(store: Store, forged: Any) -> None:
    before = hashlib.sha256(store.local("manifests", "g", "000002.json").read_bytes()).hexdigest()
    if isinstance(forged, dict):
        forged = {**forged, "seq": 3, "prev": before, "run_group": "g"}
    store.local("manifests", "g", "000003.json").write_bytes(canonical(forged))
    manifest = read_manifest(store, "g", None)
    assert [str(each) for each in manifest.problems] == ["manifest entry 3: was changed: it is no entry of a manifest"]
    compare_manifest(manifest, {})
    assert "manifest" in verify_group(store, "g", None).problems


@pytest.mark.parametrize("text", ['{"kind": NaN}', "[" * 100_000, '{"a":1}\n', '{"signature":"\\ud800"}', "\xff"])
def test_so_is_what_no_json_of_ours_is(store: Store, text: str) -> None:
    store.local("manifests", "g", "000003.json").write_bytes(text.encode("latin-1"))
    for key in (None, KEY):
        assert any("entry 3" in each.where for each in read_manifest(store, "g", key).problems)


@pytest.mark.parametrize("signature", ["é", 3, ["a"], "ed25519:zz"])
def test_a_signature_of_any_form_is_checked(store: Store, signature: object) -> None:
    before = hashlib.sha256(store.local("manifests", "g", "000002.json").read_bytes()).hexdigest()
    entry = {"kind": "started", "run": "a/0", "seq": 3, "prev": before, "run_group": "g", "signature": signature}
    store.local("manifests", "g", "000003.json").write_bytes(canonical(entry))
    assert "manifest entry 3: was not signed with this key" in map(str, read_manifest(store, "g", KEY).problems)


def test_without_a_signed_entry_a_key_proves_nothing(store: Store) -> None:
    assert [str(each) for each in read_manifest(store, "g", KEY).problems] == [
        "manifest: has no signed entry, although there is a key: it was made without one, or forged"
    ]
    assert read_manifest(store, "g", KEY).vouched() == set()


def test_the_first_signed_entry_vouches_for_those_before_it(store: Store) -> None:
    append(store, "g", KEY, "planned", **PLAN)
    append(store, "g", KEY, "planned", **PLAN)
    manifest = read_manifest(store, "g", KEY)
    assert (len(manifest.entries), manifest.unsigned, manifest.problems) == (4, 3, []), "the signed plan stands once"
    assert manifest.vouched() == {RUN["head"]}

    path = store.local("manifests", "g", "000002.json")
    path.write_bytes(canonical({**json.loads(path.read_bytes()), "head": "b" * 64}))
    changed = read_manifest(store, "g", KEY)
    assert "manifest entry 3: does not follow the one before" in str(changed.problems[0])
    assert changed.vouched() == set()


def test_nothing_unsigned_follows_a_signed_entry(store: Store) -> None:
    append(store, "g", KEY, "started", run="diabetes/1")
    append(store, "g", None, "recorded", run="diabetes/1", head="c" * 64)
    assert [str(each) for each in read_manifest(store, "g", KEY).problems] == [
        "manifest entry 4: was not signed with this key"
    ]
