import io
from typing import Any

import bson as reference  # of pymongo
import pytest

from competitions import registry
from competitions.errors import DownloadError

bson = registry.get("cdiscount-image-classification-challenge").module("bson")
PRODUCTS = [
    {"_id": 7, "category_id": 1000010653, "imgs": [{"picture": b"\xff\xd8" + bytes(300)}, {"picture": b""}]},
    {"_id": 2**40, "name": "été", "none": None, "share": 0.5, "new": True, "category_id": -3, "imgs": []},
]
BYTES = [reference.encode(product) for product in PRODUCTS]


def test_documents_are_the_bytes_of_each_document_in_order() -> None:
    assert list(bson.documents(io.BytesIO(b"".join(BYTES)))) == BYTES


def test_documents_are_found_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bson, "_BLOCK", 7)

    assert list(bson.documents(io.BytesIO(b"".join(BYTES)))) == BYTES


def test_an_empty_file_has_no_documents() -> None:
    assert list(bson.documents(io.BytesIO())) == []


@pytest.mark.parametrize("kept", [2, 50])
def test_a_file_that_ends_within_a_document_is_reported(kept: int) -> None:
    with pytest.raises(DownloadError, match="cut off"):
        list(bson.documents(io.BytesIO(BYTES[1] + BYTES[0][:kept])))


def test_a_length_that_cannot_be_is_reported_before_anything_is_read() -> None:
    with pytest.raises(DownloadError, match="damaged"):
        list(bson.documents(io.BytesIO(b"\xff\xff\xff\x7f" + bytes(100))))


@pytest.mark.parametrize("name", ["_id", "category_id"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_integers_of_both_widths_are_read(product: dict[str, Any], name: str) -> None:
    assert bson.integer(reference.encode(product), name) == product[name]


def test_a_missing_element_and_one_that_is_no_integer_are_reported() -> None:
    with pytest.raises(DownloadError, match="lacks the element 'price'"):
        bson.integer(BYTES[0], "price")
    with pytest.raises(DownloadError, match="not an integer"):
        bson.integer(BYTES[0], "imgs")


@pytest.mark.parametrize("name", ["_id", "category_id", "imgs"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_dropping_an_element_equals_encoding_without_it(product: dict[str, Any], name: str) -> None:
    rest = {key: value for key, value in product.items() if key != name}

    assert bson.without(reference.encode(product), name) == reference.encode(rest)
