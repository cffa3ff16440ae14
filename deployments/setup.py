"""First steps of a new installation: create the store's bucket and Dask's certificate, and register the deployments.

    python -m deployments.setup [--pool NAME] [--certificate FILE]

`deployments/compose.yaml` runs this at every start. It is idempotent.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common.errors import UserError
from deployments.deploy import POOL, deploy
from flows import which_server
from storage.datasets.cluster_access import write_certificate
from storage.store import Store
from tasks.wiring.context import open_store


def make_bucket(store: Store) -> bool:
    """Create the bucket of an object store if it is missing; returns whether it was.

    Raises the errors of the file system.
    """
    from storage.store import fsspec_at

    if store.top.local:
        return False
    fs, path = fsspec_at(store.root)
    bucket = path.split("/", 1)[0]
    if fs.exists(bucket):
        return False
    fs.mkdir(bucket)
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description="Create the store's bucket and register the deployments.")
    parser.add_argument("--pool", default=POOL, help=f"work pool (default: {POOL})")
    parser.add_argument("--certificate", type=Path, help="file for the certificate of Dask, which is kept if it exists")
    options = parser.parse_args(arguments)
    try:
        if options.certificate and not options.certificate.exists():
            write_certificate(options.certificate)
        store = open_store()
        which_server.choose()
        if make_bucket(store):
            print(f"created the bucket of {store.root}")  # noqa: T201
        store.require_usable()
    except (UserError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)  # noqa: T201
        return 1
    for name in deploy(options.pool):
        print(name)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
