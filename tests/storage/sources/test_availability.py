"""A download that not everybody can have is unavailable if its source says so, and not for any other error."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from competitions import registry
from competitions.errors import DownloadError, Unavailable
from storage.sources.availability import stating_availability
from storage.sources.kaggle import errors
from storage.sources.kaggle.retry import Policy, retrying
from storage.sources.local import Local

CLOSED = registry.get("detecting-insults-in-social-commentary")


def answer(status: int, text: str = "") -> requests.Response:
    response = requests.Response()
    response.status_code, response._content = status, f'{{"code": {status}, "message": "{text}"}}'.encode()
    return response


def ask(error: requests.RequestException) -> None:
    """A request to Kaggle that ends with this error, without patience."""

    def fail() -> None:
        raise error

    with stating_availability(CLOSED):
        retrying(CLOSED.id, "page", fail, policy=Policy(patience=0))


@pytest.mark.parametrize("status", [403, 404])
def test_an_answer_that_it_is_not_for_this_account(status: int) -> None:
    for text in ("", "You must accept this competition's rules"):
        with pytest.raises(Unavailable):
            ask(requests.HTTPError(response=answer(status, text)))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (requests.ConnectionError("no route"), errors.Unreachable),
        (requests.HTTPError(response=answer(503)), errors.Unreachable),
        (requests.HTTPError(response=answer(401)), errors.RejectedCredentials),
        (requests.HTTPError(response=answer(400)), errors.KaggleError),
        (requests.exceptions.SSLError("CERTIFICATE_VERIFY_FAILED"), errors.KaggleError),
        (requests.exceptions.ProxyError("407 Proxy Authentication Required"), errors.KaggleError),
    ],
)
def test_an_outage_or_a_mistake_is_a_failure(error: requests.RequestException, expected: type[DownloadError]) -> None:
    with pytest.raises(expected) as caught:
        ask(error)
    assert not isinstance(caught.value, Unavailable)


def test_a_directory_that_has_it_not(tmp_path: Path) -> None:
    with pytest.raises(Unavailable), stating_availability(CLOSED):
        Local(tmp_path).fetch(CLOSED, tmp_path)
    with pytest.raises(DownloadError, match="is not a directory") as caught, stating_availability(CLOSED):
        Local(tmp_path / "nowhere").fetch(CLOSED, tmp_path)
    assert not isinstance(caught.value, Unavailable)
