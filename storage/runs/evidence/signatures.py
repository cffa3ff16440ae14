"""Hashes and signatures of the evidence: with a secret (HMAC), or with a pair of keys (Ed25519).

Everybody who can check an HMAC can also forge it. With Ed25519, operators sign with the private key and publish the
public key, which can check signatures but not create them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from common import plain_json
from common.errors import UserError
from storage.runs.folders import RunFolder
from storage.runs.records import GradeRecord, RunRecord, SnapshotRecord

_PEM, _ED25519 = "-----BEGIN", "ed25519:"
_IDENTITY = ("run_group", "competition_id", "seed")
R = TypeVar("R", GradeRecord, RunRecord)


@dataclass(frozen=True)
class Problem:
    """A difference between the evidence and the store: where it is, and what it is."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def canonical(value: Any) -> bytes:
    r"""The canonical form of a JSON value: sorted keys, no white space, ASCII.

    >>> canonical({"b": 1, "a": "é"})
    b'{"a":"\\u00e9","b":1}'
    """
    return plain_json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def fingerprint(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form, as hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def sign(text: str, key: str) -> str:
    """The signature of a text.

    Args:
        text: what is signed, such as the hash of a record.
        key: a secret, or an Ed25519 private key in PEM form.

    Returns:
        The HMAC-SHA-256 as hexadecimal digits, or ``ed25519:`` and the signature as hexadecimal digits.

    Raises:
        UserError: the key is a public key, or another PEM.
    """
    if not key.startswith(_PEM):
        return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
    private, _ = _ed25519_keys(key)
    if private is None:
        raise UserError("a public key cannot sign the evidence: set MLEBENCH_LEDGER_KEY to the private key")
    return _ED25519 + private.sign(text.encode()).hex()


def signed(text: str, signature: str, key: str) -> bool:
    """Whether the signature of a text was made with the key. A public key checks what its private key signed."""
    if not key.startswith(_PEM):
        return hmac.compare_digest(sign(text, key).encode(), signature.encode(errors="replace"))
    from cryptography.exceptions import InvalidSignature

    try:
        _ed25519_keys(key)[1].verify(bytes.fromhex(signature.removeprefix(_ED25519)), text.encode())
    except (InvalidSignature, ValueError):
        return False
    return signature.startswith(_ED25519)


def sign_record(record: R, key: str | None) -> R:
    """The record of a grade, or of a regraded copy, with its signature; unchanged without a key."""
    return record.replace(signature=sign(_signed_text(record.to_json()), key)) if key else record


def snapshots_hash(records: Iterable[SnapshotRecord]) -> str:
    """Hash of graded snapshots, which the record of the grade contains."""
    return fingerprint([record.to_json() for record in records])


def check_record(content: Mapping[str, Any], where: str, folder: RunFolder, key: str | None) -> list[Problem]:
    """The problems of a record that `sign_record` signed: it belongs to another folder, or the signature is wrong.

    Args:
        content: the JSON of the record.
        where: name of its file, for the problems.
        folder: the folder that it lies in.
        key: key for checking signatures; they are not checked if it is None or empty.
    """
    problems = check_identity(content, where, folder)
    if key:
        signature = content.get("signature")
        if not signature:
            problems.append(Problem(where, "is not signed, although there is a key: grade again with mlebench regrade"))
        elif not signed(_signed_text(content), str(signature), key):
            problems.append(Problem(where, "was changed, or was not signed with this key"))
    return problems


def check_identity(content: Mapping[str, Any], where: str, folder: RunFolder) -> list[Problem]:
    """Problems if a record lies in the folder of another run."""
    return [
        Problem(where, f"is of {name} {content.get(name)!r}, but lies in the folder of {getattr(folder, name)!r}")
        for name in _IDENTITY
        if content.get(name) != getattr(folder, name)
    ]


def _signed_text(content: Mapping[str, Any]) -> str:
    return "record " + fingerprint({name: value for name, value in content.items() if name != "signature"})


def _ed25519_keys(pem: str) -> tuple[Any, Any]:
    """The private key (None if the PEM is a public one) and the public key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    try:
        if "PRIVATE" in pem.split("\n", 1)[0]:
            private = load_pem_private_key(pem.encode(), password=None)
            if isinstance(private, Ed25519PrivateKey):
                return private, private.public_key()
        else:
            public = load_pem_public_key(pem.encode())
            if isinstance(public, Ed25519PublicKey):
                return None, public
    except (ValueError, TypeError) as error:
        raise UserError(f"the key of the evidence cannot be read: {error}") from error
    raise UserError("the key of the evidence is not an Ed25519 key: make one with openssl genpkey -algorithm ed25519")
