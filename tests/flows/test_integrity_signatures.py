"""Signatures of the evidence: a key that is set later, forged values, and keys that everybody can check with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.cli import main
from storage.runs.evidence.group_manifest import GENESIS
from storage.runs.evidence.signatures import canonical
from storage.runs.evidence.verify import verify_group
from tasks.wiring.attempts import note_plan
from tasks.wiring.requests import RunRequest
from tests.flows.ledgers import edit, finished_store, run, signed, verify
from tests.stores import Store

__all__ = ["finished_store", "run", "verify"]


def _without_key(run: Path) -> None:
    """Turn the finished group into one that was made without a key."""
    before = GENESIS
    for path in sorted((run.parents[3] / "manifests" / "g").iterdir()):
        entry = {name: value for name, value in json.loads(path.read_bytes()).items() if name != "signature"}
        path.write_bytes(canonical({**entry, "prev": before}))
        before = hashlib.sha256(path.read_bytes()).hexdigest()
    for name, signature in (("run.json", "ledger_signature"), ("grade.json", "signature")):
        content = {key: value for key, value in json.loads((run / name).read_bytes()).items() if key != signature}
        (run / name).write_bytes(Store.json_bytes(content))


def test_a_key_that_is_set_later(
    run: Path, verify: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _without_key(run)
    assert verify()[0] == 0
    signed(monkeypatch)
    code, text = verify()
    assert code == 1
    assert "manifest: has no signed entry, although there is a key" in text
    assert "signature: is missing, although MLEBENCH_LEDGER_KEY is set" in text
    assert "manifest entry" not in text, "said once"

    store = Store(str(tmp_path / "store"))
    note_plan(store, RunRequest(agent="asks", run_group="g", store=store.root), ["diabetes"])
    code, text = verify()
    assert code == 1
    assert [line.strip() for line in text.splitlines() if line.startswith(" ")] == [
        "grade.json: is not signed, although there is a key: grade again with mlebench regrade"
    ], "the first signed entry vouches for the run, and a grade can be made again"
    assert main(["regrade", "g", "--store", str(tmp_path / "store")]) == 0
    code, text = verify()
    assert code == 0
    assert "the manifest's first entries (4), and the runs that they name, were made without a key" in text

    edit(run, duration_seconds=1.5)
    assert verify()[0] == 1, "vouched for as it was"


ODD = [float("nan"), -1, 10**400, "é", [], {"a": {}}, None, True, json.loads("[" * 600 + "]" * 600)]


@pytest.mark.parametrize("name", ["run.json", "grade.json", "ledger.jsonl", "snapshots.json"])
def test_no_forged_value_ends_verifying(
    run: Path, verify: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Each field takes each odd value; a finding or a message is right, a traceback is not."""
    signed(monkeypatch)
    path = run / name
    original = path.read_bytes()
    first, _, rest = original.partition(b"\n") if name == "ledger.jsonl" else (original, b"", b"")
    content = json.loads(first)
    record = content[0] if isinstance(content, list) else content
    for field in record:
        for value in ODD:
            changed = {**record, field: value}
            path.write_bytes(json.dumps([changed] if isinstance(content, list) else changed).encode() + b"\n" + rest)
            results = verify_group(Store(str(run.parents[3])), "g", "the operator's").problems
            assert value == record[field] or any(results.values()), (field, value)


def test_anybody_can_check_what_only_the_operator_can_sign(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    keys = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    private = keys[0].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    for key, name in zip(keys, ("own.pub", "other.pub"), strict=True):
        pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / name).write_bytes(pem)
    store = str(tmp_path / "store")
    signed(monkeypatch, private)
    assert main(["regrade", "g", "--store", store]) == 0
    grade = json.loads((run / "grade.json").read_text())
    assert grade["signature"].startswith("ed25519:")
    for name, says in (("own.pub", False), ("other.pub", True)):
        capfd.readouterr()
        main(["verify", "g", "--public-key", str(tmp_path / name), "--store", store])
        assert ("grade.json: was changed, or was not signed with this key" in capfd.readouterr().out) == says
    signed(monkeypatch, (tmp_path / "own.pub").read_text())
    assert main(["regrade", "g", "--store", store]) == 1
    assert "a public key cannot sign the evidence" in capfd.readouterr().err
