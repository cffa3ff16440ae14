"""Pull the most voted public notebooks of a competition into the store as plain code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from storage.frames import read_frame, write_frame
from storage.notebooks import plain_code
from storage.sources.kaggle.errors import KaggleError, NoCredentials, Unreachable, competition_page
from storage.sources.source import NETWORK_TIMEOUT, Report
from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T", bound=Any)
INDEX = "index.parquet"
_PAGE_SIZE = 50
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Kernel:
    """One row of the index: a notebook, its votes at the time of the pull, and the file with its code."""

    ref: str
    title: str
    author: str
    votes: int
    kernel_type: str
    last_run_at: str | None
    version: int | None
    url: str
    path: str
    bytes: int
    fetched_at: str


def find_kernels(competition_id: str, top: int, timeout: float = NETWORK_TIMEOUT) -> list[Any]:
    """The `top` most voted public Python notebooks and scripts, best first. Raises `KaggleError`."""
    from storage.sources.kaggle.retry import retrying

    kernels: dict[str, Any] = {}
    page = 1
    while len(kernels) < top:
        answer = retrying(
            competition_id, competition_page(competition_id), partial(_list, competition_id, page, timeout)
        )
        new = [kernel for kernel in answer.kernels or [] if kernel.ref not in kernels]
        kernels.update((kernel.ref, kernel) for kernel in new if "/" in kernel.ref and not kernel.is_private)
        if not new:
            break
        page += 1
    return sorted(kernels.values(), key=lambda kernel: -kernel.total_votes)[:top]


def pull_kernels(
    store: Store,
    competition_id: str,
    top: int,
    report: Report = lambda _: None,
    timeout: float = NETWORK_TIMEOUT,
) -> list[Kernel]:
    """Pull the `top` most voted notebooks into ``kernels/<id>/``, and finally write their index. Returns its rows.

    Notebooks that cannot be pulled, e.g. private ones, are reported and skipped. Files of earlier pulls that are not in
    the new index are removed. Raises `KaggleError` if no notebook can be pulled.
    """
    chosen = find_kernels(competition_id, top, timeout)
    if not chosen:
        raise KaggleError(f"{competition_id}: Kaggle shows no public notebooks; see {_code_page(competition_id)}")
    kernels = [
        write_kernel(store, competition_id, answer, kernel) for kernel, answer in fetch_each(chosen, report, timeout)
    ]
    if not kernels:
        raise KaggleError(f"{competition_id}: none of {len(chosen)} notebooks can be pulled")
    replace_index(store, competition_id, kernels)
    return kernels


def replace_index(store: Store, competition_id: str, kernels: list[Kernel]) -> None:
    """Write the index, and remove files that are not in it."""
    import pandas as pd

    frame = pd.DataFrame([asdict(kernel) for kernel in kernels])
    write_frame(store, store.url("kernels", competition_id, INDEX), frame)
    kept_urls = {store.url("kernels", competition_id, name) for name in (INDEX, *(kernel.path for kernel in kernels))}
    for url in store.glob(f"kernels/{competition_id}/*"):
        if url not in kept_urls:
            store.remove(url)


def read_index(store: Store, competition_id: str) -> pd.DataFrame | None:
    """The index of pulled notebooks, most voted first; None if none were pulled."""
    return read_frame(store, store.url("kernels", competition_id, INDEX))


def fetch_kernel(ref: str, timeout: float, version: int | None = None) -> Any:
    """Kaggle's answer with the code of a notebook; the newest one without a version. Raises `KaggleError`."""
    from storage.sources.kaggle.retry import retrying

    return retrying(ref, _page(ref), partial(_get, ref, timeout, version))


def fetch_each(listed: Iterable[T], report: Report, timeout: float) -> Iterator[tuple[T, Any]]:
    """The items, which have a `ref`, each with Kaggle's answer. Unavailable notebooks are reported and left out.

    Raises `KaggleError` if no notebook is available, without credentials, or without a connection.
    """
    for kernel in listed:
        try:
            yield kernel, fetch_kernel(kernel.ref, timeout)
        except (NoCredentials, Unreachable):
            raise
        except KaggleError as error:
            report(str(error))


def code_of(answer: Any) -> bytes:
    """The plain code in an answer of `fetch_kernel`, as it is stored."""
    return plain_code((answer.blob.source if answer.blob else None) or "").encode()


def write_kernel(store: Store, competition_id: str, answer: Any, listed: Any) -> Kernel:
    """Store the code of a notebook. Returns its row in the index.

    Args:
        store: the store.
        competition_id: the competition that it belongs to.
        answer: the result of `fetch_kernel`.
        listed: facts about it: its `ref`, and `title`, `author`, `total_votes` and `last_run_time`.
    """
    code = code_of(answer)
    name = _UNSAFE.sub("-", listed.ref.replace("/", "--")).lstrip(".-") + ".py"
    store.write(store.url("kernels", competition_id, name), code)
    return Kernel(
        ref=listed.ref,
        title=listed.title,
        author=listed.author,
        votes=listed.total_votes,
        kernel_type=(answer.blob.kernel_type if answer.blob else None) or "",
        last_run_at=listed.last_run_time.isoformat() if listed.last_run_time else None,
        version=answer.metadata.current_version_number if answer.metadata else None,
        url=_page(listed.ref),
        path=name,
        bytes=len(code),
        fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _list(competition_id: str, page: int, timeout: float) -> Any:
    from kagglesdk.kernels.types.kernels_api_service import ApiListKernelsRequest
    from kagglesdk.kernels.types.kernels_enums import KernelsListSortType, KernelsListViewType

    from storage.sources.kaggle.client import connect

    request = ApiListKernelsRequest()
    request.competition, request.language, request.kernel_type, request.output_type = (
        competition_id,
        "python",
        "all",
        "all",
    )
    request.group, request.sort_by = KernelsListViewType.EVERYONE, KernelsListSortType.VOTE_COUNT
    request.page, request.page_size = page, _PAGE_SIZE
    with connect(timeout) as client:
        return client.kernels.kernels_api_client.list_kernels(request)


def _get(ref: str, timeout: float, version: int | None) -> Any:
    from kagglesdk.kernels.types.kernels_api_service import ApiGetKernelRequest

    from storage.sources.kaggle.client import connect

    request = ApiGetKernelRequest()
    request.user_name, request.kernel_slug = ref.split("/", 1)
    if version is not None:
        request.version_label = str(version)
    with connect(timeout) as client:
        return client.kernels.kernels_api_client.get_kernel(request)


def _page(ref: str) -> str:
    return f"https://www.kaggle.com/code/{ref}"


def _code_page(competition_id: str) -> str:
    return f"{competition_page(competition_id)}/code"
