"""Certificates of Dask clusters, whose schedulers and workers run the code of everybody who connects.

Scheduler, workers and clients of a cluster have one certificate, which is its own authority, and its key. Whoever has
the key is a client, so it is the cluster's login.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common.guard import write_private

_PREFIX = "DASK_DISTRIBUTED__COMM__"


def write_certificate(path: Path) -> None:
    """Write a new certificate with its key, valid for a year, to a file that only this user can read."""
    from distributed.security import Security

    new = Security.temporary()
    write_private(path, new.tls_client_key + new.tls_client_cert)


def environment(path: Path) -> dict[str, str]:
    """The environment of Dask's programs and of clients that use the certificate in a file."""
    parts = [f"{role}__{part}" for role in ("SCHEDULER", "WORKER", "CLIENT") for part in ("CERT", "KEY")]
    files = dict.fromkeys([f"{_PREFIX}TLS__{each}" for each in ("CA_FILE", *parts)], str(path))
    return {f"{_PREFIX}REQUIRE_ENCRYPTION": "true", **files}


def security(path: Path) -> Any:
    """The `distributed.Security` of a client that uses the certificate in a file."""
    from distributed.security import Security

    file = str(path)
    return Security(require_encryption=True, tls_ca_file=file, tls_client_cert=file, tls_client_key=file)
