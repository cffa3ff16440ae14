"""Whether this account may download competitions, asked cheaply: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

from common.errors import UserError
from competitions import registry

State = Literal["ok", "rules", "refused", "unknown", "no credentials", "unreachable"]
_AT_ONCE = 4
_ATTEMPTS = 3


@dataclass(frozen=True)
class Access:
    """What Kaggle says of one competition. `page` is where to go where that helps, `message` the whole line."""

    competition_id: str
    state: State
    message: str = ""
    page: str | None = None


def access(competition_ids: Iterable[str]) -> list[Access]:
    """For each competition, whether this account may download it, in the order given. Never raises for an answer.

    "ok"; "rules" not accepted, with their page; "refused" for another reason; "unknown" to Kaggle; "no credentials",
    or wrong ones; "unreachable". One small request each: that of the download itself, whose answer is exact, without
    following it to the archive.
    """
    ids = list(competition_ids)
    if not ids:
        return []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(_access, ids))


def _access(competition_id: str) -> Access:
    from storage.sources.kaggle import errors
    from storage.sources.kaggle.retry import Policy, retrying

    page = errors.competition_page(competition_id)
    known = registry.folders()
    if competition_id in known and registry.get(competition_id).facts.source != "kaggle":
        return Access(competition_id, "ok", "made from installed libraries")
    try:
        retrying(competition_id, page, partial(_ask, competition_id), policy=Policy(_ATTEMPTS, longest=60))
    except errors.RulesNotAccepted as error:
        return Access(competition_id, "rules", str(error), errors.rules_page(competition_id))
    except errors.NoCredentials as error:
        return Access(competition_id, "no credentials", str(error), "https://www.kaggle.com/settings/api")
    except errors.NotFound as error:
        return Access(competition_id, "unknown", str(error), page)
    except errors.Unreachable as error:
        return Access(competition_id, "unreachable", str(error))
    except UserError as error:
        return Access(competition_id, "refused", str(error), page)
    return Access(competition_id, "ok")


def _ask(competition_id: str) -> None:
    import requests
    from kagglesdk.competitions.types.competition_api_service import ApiDownloadDataFilesRequest

    from storage.sources.kaggle.client import connect

    request = ApiDownloadDataFilesRequest()
    request.competition_name = competition_id
    with connect(follow=False) as client:
        try:
            client.competitions.competition_api_client.download_data_files(request).close()
        except requests.TooManyRedirects:  # the way to the archive: it may be had
            return
