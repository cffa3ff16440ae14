"""What a new installation needs besides its services: the store's bucket, and the deployments.

    python -m deployments.setup [--pool NAME]

Done at every start of `deployments/compose.yaml`; doing it again changes nothing.
"""

from __future__ import annotations

import argparse
import sys

from common.errors import UserError
from deployments.deploy import POOL, deploy
from storage.store import Store
from tasks.wiring.stores import open_store


def make_bucket(store: Store) -> bool:
    """Make the bucket of a store that is in one; returns whether it was missing. Raises what the file system does."""
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
    """Set up."""
    parser = argparse.ArgumentParser(description="Make the store's bucket and register the deployments.")
    parser.add_argument("--pool", default=POOL, help=f"work pool (default: {POOL})")
    options = parser.parse_args(arguments)
    try:
        store = open_store()
        if make_bucket(store):
            print(f"made the bucket of {store.root}")  # noqa: T201
        store.check()
    except (UserError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)  # noqa: T201
        return 1
    for name in deploy(options.pool):
        print(name)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
