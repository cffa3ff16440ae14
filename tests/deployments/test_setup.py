"""What a new installation needs: a bucket that is made once."""

from __future__ import annotations

from deployments.setup import make_bucket
from storage.store import Store
from tests.s3.fixtures import Bucket


def test_a_missing_bucket_is_made_and_one_that_exists_is_left(s3: Bucket) -> None:
    assert not make_bucket(Store(s3.url))
    missing = Store(f"s3://{s3.name}-new/prefix")
    assert [make_bucket(missing), make_bucket(missing)] == [True, False]
    missing.require_usable()


def test_a_directory_needs_no_bucket(store: Store) -> None:
    assert not make_bucket(store)
