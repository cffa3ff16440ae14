"""DuckDB runs the queries of `docs/inspecting.md`, on a directory and on S3 servers that AWS_ENDPOINT_URL names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import duckdb_ext
import pytest

from tests.docs.blocks import ROOT, Block, blocks
from tests.flows.graded import GROUP, dataset, graded, group
from tests.s3.fixtures import Bucket
from tests.stores import Store

pytestmark = pytest.mark.slow

__all__ = ["dataset", "graded", "group"]

EXTENSIONS = f"{next(iter(duckdb_ext.__path__))}/extensions"
"""From packages; DuckDB's INSTALL would download them."""


def block(language: str, having: str) -> Block:
    """The one block of the page in this language that contains a text."""
    found = [each for each in blocks(ROOT / "docs" / "inspecting.md") if each.language == language]
    (one,) = [each for each in found if having in each.text]
    return one


def lowest(connection: duckdb.DuckDBPyConnection, root: str) -> list[tuple[object, ...]]:
    """The rows of the page's query."""
    return connection.sql(block("sql", "SELECT").text.replace("'store/", f"'{root}/")).fetchall()


def test_a_local_store_is_queried(group: Store) -> None:
    ((name, agent, medals, runs),) = lowest(duckdb.connect(), str(group.local()))
    assert (name, agent, runs) == (GROUP, "mine", 3)
    assert medals == pytest.approx(1 / 3)


def test_a_bucket_is_queried_on_the_server_that_aws_endpoint_url_names(
    group: Store, s3: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = Store(s3.url)
    for path in group.local("tables", "grades").rglob("*.parquet"):
        bucket.put(bucket.url(*path.relative_to(group.local()).parts), path)
    monkeypatch.setenv("HOME", str(tmp_path))

    with duckdb.connect(config={"extension_directory": EXTENSIONS}) as connection:
        server = urlsplit(s3.environment["AWS_ENDPOINT_URL"])
        secret = block("sql", "CREATE SECRET").text
        secret = secret.replace("s3.example.com:9000", server.netloc).replace("USE_SSL true", "USE_SSL false")
        connection.sql(secret)
        ((name, *_),) = lowest(connection, s3.url)
        assert name == GROUP

    duckdb.sql(f"SET extension_directory = '{EXTENSIONS}'")
    names: dict[str, duckdb.DuckDBPyRelation] = {}
    exec(block("python", "AWS_ENDPOINT_URL").text.replace("s3://bucket/prefix", s3.url), names)
    assert len(names["grades"]) == 3
    duckdb.sql("DROP SECRET __default_s3")
