"""Objects of any size on S3: parts grow with the position, go up side by side, and leave nothing behind on errors."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from blake3 import blake3

from storage import multipart
from storage.multipart import MAX_OBJECT_BYTES, MAX_PARTS, part_size
from storage.writers import Destination
from tests.s3.fixtures import Bucket, FaultyBucket
from tests.waiting import until

pytestmark = pytest.mark.slow

MIB = 1 << 20
SMALLEST = 5 * MIB  # that S3 servers accept, except for the last part


@pytest.mark.parametrize("expected", [0, 1, 84 << 30, 450 << 30, 1 << 40, MAX_OBJECT_BYTES])
def test_ten_thousand_parts_have_room_for_the_largest_object(expected: int) -> None:
    sizes = [part_size(number, expected) for number in range(1, MAX_PARTS + 1)]
    assert sum(sizes) >= MAX_OBJECT_BYTES, "also if the object is larger than expected"
    assert min(sizes) >= SMALLEST
    assert max(sizes) <= 5 << 30
    assert sizes == sorted(sizes)
    parts = next(number for number, end in enumerate(itertools.accumulate(sizes), 1) if end >= expected)
    assert parts <= MAX_PARTS
    if expected:
        assert sizes[parts - 1] <= max(8 * MIB, expected // 7000), "parts stay small if the size was known"


def test_parts_of_unknown_objects_stay_small_for_long() -> None:
    ends = list(itertools.accumulate(part_size(number) for number in range(1, MAX_PARTS + 1)))

    def largest(total: int) -> int:
        return part_size(next(number for number, end in enumerate(ends, 1) if end >= total))

    assert largest(7 << 30) == 8 * MIB
    assert largest(84 << 30) < 160 * MIB


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 5, 5, 6, 7, 8, ... MiB: as part_size, with growth at once."""
    monkeypatch.setattr(multipart, "part_size", lambda number, _=0: SMALLEST + max(0, number - 2) * MIB)


def pieces(count: int) -> Iterator[bytes]:
    """`count` MiB in pieces of other sizes than parts have."""
    data = memoryview(b"".join(bytes([number % 251]) * MIB for number in range(count)))
    for start in range(0, len(data), 700_001):
        yield bytes(data[start : start + 700_001])


def content(count: int) -> bytes:
    return b"".join(pieces(count))


@pytest.mark.usefixtures("small_parts")
def test_an_object_in_growing_parts_reads_back_the_same(s3: Bucket) -> None:
    destination = Destination(s3.url)
    written = destination.write("large", pieces(27), md5=True)
    assert destination.fs.cat_file(destination.path("large")) == content(27)
    assert (written.bytes, written.hash) == (27 * MIB, blake3(content(27)).hexdigest())
    tag = s3.client.head_object(Bucket=s3.name, Key="some/prefix/large")["ETag"]
    assert tag.endswith('-5"'), "5 + 5 + 6 + 7 and 4 MiB"


@pytest.mark.parametrize("size", [0, 1, SMALLEST - 1, SMALLEST, SMALLEST + 1])
@pytest.mark.usefixtures("small_parts")
def test_every_size_is_written_whole(s3: Bucket, size: int) -> None:
    destination, data = Destination(s3.url), os.urandom(size)
    assert destination.write("x", [data]).bytes == size
    assert destination.fs.cat_file(destination.path("x")) == data


@pytest.mark.usefixtures("small_parts")
def test_parts_go_up_while_the_next_ones_are_written(faulty_s3: FaultyBucket) -> None:
    first = faulty_s3.faults.hang("PUT", "partNumber=1&")
    thread = threading.Thread(target=Destination(faulty_s3.url).write, args=("large", pieces(30)))
    thread.start()
    until(lambda: faulty_s3.proxy.count("PUT", "partNumber=[234]&") >= 3, what="the parts after one that hangs")
    assert faulty_s3.names() == []
    first.release()
    thread.join()
    assert faulty_s3.names() == ["large"]


@pytest.mark.usefixtures("small_parts")
def test_the_bytes_under_way_are_bounded(faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart, "_in_flight", multipart.Budget(12 * MIB))
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        for piece in pieces(30):
            taken += len(piece)
            yield piece

    parts = faulty_s3.faults.hang("PUT", "partNumber", times=1000)
    thread = threading.Thread(target=Destination(faulty_s3.url).write, args=("large", endless()))
    thread.start()
    until(lambda: faulty_s3.proxy.count("PUT", "partNumber") == 2 and taken >= 16 * MIB)
    assert taken < 18 * MIB, "two parts under way, and the third one filled"
    parts.release()
    thread.join()
    assert faulty_s3.names() == ["large"]


@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.usefixtures("small_parts")
def test_a_part_that_is_refused_leaves_nothing(faulty_s3: FaultyBucket, number: int) -> None:
    faulty_s3.faults.status(403, "PUT", f"partNumber={number}&", times=100)
    destination = Destination(faulty_s3.url)
    with pytest.raises(PermissionError):
        destination.write("large", pieces(27))
    assert faulty_s3.names() == []
    assert unfinished(faulty_s3) == []


@pytest.mark.usefixtures("small_parts")
def test_an_error_of_the_producer_leaves_nothing(s3: Bucket) -> None:
    def breaks() -> Iterator[bytes]:
        yield from pieces(12)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        Destination(s3.url).write("large", breaks())
    assert s3.names() == []
    assert unfinished(s3) == []


@pytest.mark.usefixtures("small_parts")
def test_a_completion_whose_answer_was_lost_is_recognised(faulty_s3: FaultyBucket) -> None:
    lost = faulty_s3.faults.lose_answer("POST", "uploadId=")
    written = Destination(faulty_s3.url).write("large", pieces(12))
    assert lost.hits == 1
    assert (
        faulty_s3.client.head_object(Bucket=faulty_s3.name, Key="some/prefix/large")["ContentLength"] == written.bytes
    )


def unfinished(bucket: Bucket) -> list[Any]:
    found: list[Any] = bucket.client.list_multipart_uploads(Bucket=bucket.name).get("Uploads", [])
    return found
