"""Commands on servers that speak only a part of S3's protocol: it does, or is refused by name before any work."""

from __future__ import annotations

import itertools

import pytest

from flows.cli import main
from storage.remote import S3Options, configure, set_fsspec_defaults
from tests.s3.fixtures import FaultyBucket
from tests.s3.servers import SERVERS

pytestmark = pytest.mark.slow

WORK = {
    "an older server": ("content_md5", "no_checksums", "no_upload_listing"),
    "a simple gateway": ("no_bulk_delete", "no_checksums"),
}
NOT_ASKED = ("content_md5", "no_checksums")
REFUSED = {
    "no_conditions": "cannot create a file only if it does not exist (PutObject with If-None-Match): ",
    "ignored_conditions": "(it ignores If-None-Match)",
    "no_parts": "cannot take a file in parts (CreateMultipartUpload, UploadPart, CompleteMultipartUpload): ",
    "no_list_v2": "cannot list files in pages (ListObjectsV2): ",
    "other_region": "; set AWS_DEFAULT_REGION to the region of the bucket or server",
    "virtual_hosts": "; set addressing_style = virtual below s3 in ~/.aws/config",
}


def test_each_server_is_tried() -> None:
    assert {*itertools.chain(*WORK.values()), *REFUSED} == set(SERVERS)


@pytest.mark.parametrize("server", WORK)
def test_what_can_be_done_otherwise_is(faulty_s3: FaultyBucket, server: str, capfd: pytest.CaptureFixture[str]) -> None:
    rules = {name: SERVERS[name](faulty_s3.faults) for name in WORK[server]}
    for arguments in (
        ["run", "-c", "diabetes", "--agent", "dummy", "--run-group", "mine"],
        ["rm", "mine", "--yes"],
        ["gc", "--orphans"],
    ):
        code = main([*arguments, "--store", faulty_s3.url])
        said = capfd.readouterr()
        assert code == 0, said.out + said.err
        assert "cannot" not in said.err, said.err
    names = faulty_s3.names()
    assert any(name.endswith("/commit.json") for name in names)
    assert not [name for name in names if "mine" in name or "probe" in name]
    assert {name for name, rule in rules.items() if not rule.hits} == set(NOT_ASKED) & set(rules)


@pytest.mark.parametrize("server", REFUSED)
def test_what_cannot_is_said_before_any_work(
    faulty_s3: FaultyBucket, server: str, capfd: pytest.CaptureFixture[str]
) -> None:
    SERVERS[server](faulty_s3.faults)
    assert main(["prepare", "-c", "diabetes", "--store", faulty_s3.url]) == 1
    err = capfd.readouterr().err
    assert REFUSED[server] in err
    assert err.count("\n") == 1
    assert not [name for name in faulty_s3.names() if "prepared/" in name or "raw/" in name]


def test_parts_of_equal_size_are_sent_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec.config

    monkeypatch.setattr("storage.remote._options", S3Options())
    monkeypatch.setattr(fsspec.config, "conf", {})
    for address, equal in (("https://abc.r2.cloudflarestorage.com", True), ("https://s3.example.org", None)):
        fsspec.config.conf.clear()
        configure(S3Options(endpoint_url=address))
        set_fsspec_defaults()
        assert fsspec.config.conf["s3"].get("fixed_upload_size") is equal
