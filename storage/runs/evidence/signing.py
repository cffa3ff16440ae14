"""Signatures of the evidence: with a secret (HMAC), or with a pair of keys (Ed25519).

Whoever can check an HMAC can also forge it. With Ed25519, operators sign with the private key, and publish the public
key, with which anybody can check and nobody can sign.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from common.errors import UserError

_PEM, _PAIR = "-----BEGIN", "ed25519:"


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
    private, _ = _pair(key)
    if private is None:
        raise UserError("a public key cannot sign the evidence: set MLEBENCH_LEDGER_KEY to the private key")
    return _PAIR + private.sign(text.encode()).hex()


def signed(text: str, signature: str, key: str) -> bool:
    """Whether the signature of a text was made with the key. A public key checks what its private key signed."""
    if not key.startswith(_PEM):
        return hmac.compare_digest(sign(text, key).encode(), signature.encode(errors="replace"))
    from cryptography.exceptions import InvalidSignature

    try:
        _pair(key)[1].verify(bytes.fromhex(signature.removeprefix(_PAIR)), text.encode())
    except (InvalidSignature, ValueError):
        return False
    return signature.startswith(_PAIR)


def _pair(pem: str) -> tuple[Any, Any]:
    """The private key, None for a public one, and the public key of a PEM."""
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
