"""Downloads from Kaggle by the real client: whatever the network does, whole and right, or an error that helps."""

from __future__ import annotations

import hashlib
import io
import random
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.errors import DownloadError
from storage.remote import set_fsspec_defaults
from storage.sources.acquire import acquire, recorded
from storage.sources.kaggle import Kaggle, errors
from tests.kaggle_server import Fault, KaggleServer
from tests.kaggle_server.server import RULES
from tests.stores import Store

ID = "leaf-classification"


def archive(seed: int = 0, size: int = 3_000_000) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("train.csv", random.Random(seed).randbytes(size))
    return buffer.getvalue()


ARCHIVE = archive()


def with_md5(content: bytes) -> Competition:
    real = registry.get(ID)
    checksums = real.facts.checksums.model_copy(update={"download": hashlib.md5(content).hexdigest()})
    return real.model_copy(update={"facts": real.facts.model_copy(update={"checksums": checksums})})


@pytest.fixture
def leaf(kaggle: KaggleServer) -> Competition:
    kaggle.archives[ID] = ARCHIVE
    return with_md5(ARCHIVE)


@pytest.fixture(params=["local", "elsewhere"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """On this machine, through a file; and an object store, streamed to."""
    return Store(str(tmp_path / "store") if request.param == "local" else f"memory://{tmp_path.name}")


def stored(store: Store) -> bytes:
    return store.read(store.raw(ID))


def starts(kaggle: KaggleServer) -> list[str]:
    return [request.headers.get("Range", "bytes=0-") for request in kaggle.asked("storage")]


def test_an_archive_comes_whole(kaggle: KaggleServer, leaf: Competition, store: Store) -> None:
    record = acquire(store, leaf, Kaggle())
    assert stored(store) == ARCHIVE
    assert (record["bytes"], record["source"]) == (len(ARCHIVE), "kaggle")
    assert acquire(store, leaf, Kaggle()) == record
    assert len(kaggle.asked("storage")) == 1
    assert not store.glob(f"raw/{ID}/partial*")


def test_a_cut_goes_on_where_it_was(kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float]) -> None:
    kaggle.faults[ID].extend([Fault(cut=1_000_000), Fault(cut=900_000), Fault(drip=1500)])
    acquire(store, leaf, Kaggle())
    assert stored(store) == ARCHIVE
    first, second, third = (int(text.removeprefix("bytes=").rstrip("-")) for text in starts(kaggle))
    assert first == 0 < second < third
    assert len(waits) == 2


def test_a_connection_that_has_gone_silent_is_given_up(
    kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float]
) -> None:
    kaggle.faults[ID].append(Fault(stall=1_000_000))
    acquire(store, leaf, Kaggle(timeout=1))
    assert stored(store) == ARCHIVE
    assert waits


def test_a_slow_drip_is_no_silence(kaggle: KaggleServer, leaf: Competition, tmp_path: Path, waits: list[float]) -> None:
    kaggle.faults[ID].append(Fault(drip=200_000, pause=0.25))  # four seconds in all
    acquire(Store(str(tmp_path / "store")), leaf, Kaggle(timeout=3))
    assert not waits, "it went on in one piece although it took longer than the limit on silence"


def test_a_server_without_ranges_is_read_again(
    kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float]
) -> None:
    kaggle.tags[ID] = None
    kaggle.faults[ID].append(Fault(cut=1_000_000))
    acquire(store, leaf, Kaggle())
    assert stored(store) == ARCHIVE


def test_another_archive_in_the_middle_starts_over(
    kaggle: KaggleServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kaggle.archives[ID] = archive(1)
    kaggle.faults[ID].append(Fault(cut=1_000_000))
    new = archive(2)
    # Between the cut and the next attempt the competition's host replaces the archive.
    monkeypatch.setattr("storage.sources.kaggle.retry.sleep", lambda _: kaggle.archives.update({ID: new}))
    acquire(store, with_md5(new), Kaggle())
    assert stored(store) == new


@pytest.mark.parametrize("claim", [500_000, -500_000])
def test_a_wrong_length_never_passes(
    kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float], claim: int
) -> None:
    kaggle.tags[ID] = None
    kaggle.faults[ID].extend([Fault(claim=claim)] * 20)
    with pytest.raises(DownloadError, match=r"gave up after 8 tries|MD5|download it again"):
        acquire(store, leaf, Kaggle())
    assert not store.exists(store.raw(ID))
    assert recorded(store, leaf, Kaggle()) is None


@pytest.mark.parametrize("date", [False, True])
def test_retry_after_is_respected(
    kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float], date: bool
) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)
    headers = {"Retry-After": later if date else "300"}
    kaggle.faults[ID].extend([Fault("api", 429, "Too many requests", headers), Fault("storage", 503, "", headers)])
    acquire(store, leaf, Kaggle())
    assert len(waits) == 2
    assert all(270 <= wait < 400 for wait in waits)


def test_a_wait_that_is_too_long_is_left_to_the_user(
    kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float]
) -> None:
    kaggle.faults[ID].append(Fault("api", 429, "", {"Retry-After": "86400"}))
    with pytest.raises(errors.Unreachable, match="asks to wait 86400 s"):
        acquire(store, leaf, Kaggle())
    assert not waits


def test_what_passes_is_tried_again_ever_more_slowly(
    kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float]
) -> None:
    kaggle.faults[ID].extend([Fault("api", 500), Fault("api", 502), Fault("api", close=True), Fault("storage", 503)])
    acquire(store, leaf, Kaggle())
    assert stored(store) == ARCHIVE
    assert [low <= wait <= 3 * low for wait, low in zip(waits, (0.5, 1, 2, 4), strict=True)] == [True] * 4


def test_attempts_end(kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float]) -> None:
    kaggle.faults[ID].extend([Fault("api", 500, "sorry")] * 20)
    with pytest.raises(errors.Unreachable, match=r"gave up after 8 tries \(HTTP 500 sorry\); run again to resume"):
        acquire(store, leaf, Kaggle())
    assert len(kaggle.asked("api")) == 8


def refuse(message: str) -> Callable[[KaggleServer], None]:
    return lambda server: server.refused.update({ID: message})


@pytest.mark.parametrize(
    ("spoil", "kind", "says"),
    [
        (refuse(RULES), errors.RulesNotAccepted, rf"accept them at https://www.kaggle.com/competitions/{ID}/rules"),
        (
            refuse("Phone verification is required"),
            errors.KaggleError,
            rf"\(Phone verification is required\); see .*{ID}",
        ),
        (lambda server: server.archives.clear(), errors.NotFound, rf"see https://www.kaggle.com/competitions/{ID}"),
        (lambda server: setattr(server, "token", "another"), errors.NoCredentials, "one of three ways"),
    ],
)
def test_what_does_not_pass_is_asked_once(
    kaggle: KaggleServer,
    leaf: Competition,
    store: Store,
    waits: list[float],
    spoil: Callable[[KaggleServer], object],
    kind: type[Exception],
    says: str,
) -> None:
    spoil(kaggle)
    with pytest.raises(kind, match=says) as caught:
        acquire(store, leaf, Kaggle())
    assert "\n" not in str(caught.value)
    assert len(kaggle.requests) == 1
    assert not waits


@pytest.mark.parametrize("content", [ARCHIVE[:-200], b"<html>Service unavailable</html>", b""])
@pytest.mark.parametrize("verify", [True, False])
def test_a_damaged_archive_never_passes(
    kaggle: KaggleServer, leaf: Competition, store: Store, content: bytes, verify: bool
) -> None:
    kaggle.archives[ID] = content
    with pytest.raises(DownloadError, match="download it again"):
        acquire(store, leaf, Kaggle(), verify=verify)
    assert not store.exists(store.raw(ID))
    kaggle.archives[ID] = ARCHIVE
    assert acquire(store, leaf, Kaggle())["bytes"] == len(ARCHIVE)


def test_another_archive_than_the_published_one_is_refused(
    kaggle: KaggleServer, leaf: Competition, store: Store
) -> None:
    kaggle.archives[ID] = archive(5)
    with pytest.raises(DownloadError, match="the published one is"):
        acquire(store, leaf, Kaggle())
    assert not store.exists(store.raw(ID))
    assert acquire(store, leaf, Kaggle(), verify=False)


def test_s3_shows_nothing_before_all_is_right(
    kaggle: KaggleServer, leaf: Competition, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    set_fsspec_defaults()
    fsspec.filesystem("s3", skip_instance_cache=True).mkdir("bench")
    try:
        store = Store("s3://bench/root")
        kaggle.archives[ID] = archive(5, 20_000_000)
        with pytest.raises(DownloadError, match="the published one is"):
            acquire(store, leaf, Kaggle())
        assert not store.exists(store.raw(ID))
        kaggle.faults[ID].append(Fault(cut=15_000_000))
        acquire(store, with_md5(kaggle.archives[ID]), Kaggle())
        assert stored(store) == kaggle.archives[ID]
        assert waits
    finally:
        server.stop()


class TestWhatAnEarlierAttemptLeft:
    """Only on a local store: an unfinished upload does not exist."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return Store(str(tmp_path / "store"))

    @pytest.fixture
    def partial(self, kaggle: KaggleServer, leaf: Competition, store: Store, waits: list[float]) -> Path:
        """The file that a download left which was cut and then sent away for good."""
        kaggle.faults[ID].extend([Fault(cut=1_500_000), *[Fault("api", 503)] * 8])
        with pytest.raises(errors.Unreachable):
            acquire(store, leaf, Kaggle())
        kaggle.faults[ID].clear()
        kaggle.requests.clear()
        path = store.local("raw", ID, "partial") / f"{ID}.zip"
        assert 1_000_000 < path.stat().st_size < len(ARCHIVE)
        return path

    def test_is_gone_on_with(self, kaggle: KaggleServer, leaf: Competition, store: Store, partial: Path) -> None:
        size = partial.stat().st_size
        acquire(store, leaf, Kaggle())
        assert starts(kaggle) == [f"bytes={size}-"]
        assert stored(store) == ARCHIVE
        assert not partial.parent.exists()

    def test_of_another_archive_is_dropped(self, kaggle: KaggleServer, store: Store, partial: Path) -> None:
        kaggle.archives[ID] = archive(3)
        acquire(store, with_md5(kaggle.archives[ID]), Kaggle())
        assert stored(store) == kaggle.archives[ID]

    def test_without_its_note_is_dropped(
        self, kaggle: KaggleServer, leaf: Competition, store: Store, partial: Path
    ) -> None:
        (partial.parent / "of.json").unlink()
        acquire(store, leaf, Kaggle())
        assert stored(store) == ARCHIVE
        assert starts(kaggle) == ["bytes=0-"]

    def test_does_not_pass_for_whole_by_being_newer_or_as_large(
        self, kaggle: KaggleServer, leaf: Competition, store: Store, partial: Path
    ) -> None:
        partial.write_bytes(partial.read_bytes().ljust(len(ARCHIVE), b"\0"))
        acquire(store, leaf, Kaggle())
        assert stored(store) == ARCHIVE

    def test_that_is_whole_is_not_fetched_again(
        self, kaggle: KaggleServer, leaf: Competition, store: Store, partial: Path
    ) -> None:
        partial.write_bytes(ARCHIVE)
        acquire(store, leaf, Kaggle())
        assert stored(store) == ARCHIVE
        assert starts(kaggle) == ["bytes=0-"], "asked for its identity, and left unread"

    def test_is_not_touched_while_another_process_writes_it(
        self, leaf: Competition, store: Store, partial: Path
    ) -> None:
        import fcntl

        with (partial.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(DownloadError, match="another process is downloading it"):
                acquire(store, leaf, Kaggle())
        acquire(store, leaf, Kaggle())
        assert stored(store) == ARCHIVE
