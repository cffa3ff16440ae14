"""Check whether this account may download competitions, without downloading anything."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from common.errors import UserError
from competitions import registry
from storage.sources.source import NETWORK_TIMEOUT

State = Literal["ok", "rules", "refused", "unknown", "no credentials", "unreachable"]
MAX_REQUESTS = 4
MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class Access:
    """Kaggle's answer for one competition. `message` explains it in one line; `page` is the URL for the remedy."""

    competition_id: str
    state: State
    message: str = ""
    page: str | None = None


def access(competition_ids: Iterable[str], timeout: float = NETWORK_TIMEOUT) -> list[Access]:
    """Check for each competition, in the given order, whether this account may download it. Never raises.

    The states are "ok", "rules" (not accepted), "refused" (for another reason), "unknown" (to Kaggle), "no credentials"
    (missing or wrong) and "unreachable". Each check takes one small request: the download request, without following
    its redirect to the archive.
    """
    ids = list(competition_ids)
    asked = [name for name in ids if not _is_bundled(name)]
    answers = {name: Access(name, "ok", "generated from installed libraries") for name in ids}
    answers |= {name: _access(name, timeout) for name in asked[:1]}
    if asked and answers[asked[0]].state in ("no credentials", "unreachable"):  # so it is for all
        return [replace(answers[asked[0]], competition_id=name) if name in asked else answers[name] for name in ids]
    with ThreadPoolExecutor(MAX_REQUESTS) as pool:
        answers |= zip(asked[1:], pool.map(partial(_access, timeout=timeout), asked[1:]), strict=True)
    return [answers[name] for name in ids]


def _is_bundled(competition_id: str) -> bool:
    return competition_id in registry.folders() and registry.get(competition_id).facts.source != "kaggle"


def _access(competition_id: str, timeout: float) -> Access:
    from storage.sources.kaggle import errors
    from storage.sources.kaggle.retry import Policy, retrying

    page = errors.competition_page(competition_id)
    try:
        retrying(competition_id, page, partial(_ask, competition_id, timeout), policy=Policy(MAX_ATTEMPTS, longest=60))
    except errors.RulesNotAccepted as error:
        return Access(competition_id, "rules", str(error), errors.rules_page(competition_id))
    except errors.NoCredentials as error:
        return Access(competition_id, "no credentials", str(error))  # it names the page
    except errors.NotFound as error:
        return Access(competition_id, "unknown", str(error), page)
    except errors.Unreachable as error:
        return Access(competition_id, "unreachable", str(error).removesuffix("; run again to resume"))
    except UserError as error:
        return Access(competition_id, "refused", str(error), page)
    return Access(competition_id, "ok")


def _ask(competition_id: str, timeout: float) -> None:
    import requests
    from kagglesdk.competitions.types.competition_api_service import ApiDownloadDataFilesRequest

    from storage.sources.kaggle.client import connect

    request = ApiDownloadDataFilesRequest()
    request.competition_name = competition_id
    with connect(timeout, follow=False) as client:
        try:
            client.competitions.competition_api_client.download_data_files(request).close()
        except requests.TooManyRedirects:  # the redirect to the archive: the download is allowed
            return
