"""The store, its local cache and the sources of downloads, as configured in the settings."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from common.settings import get_settings
from competitions import registry
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.prepared import is_prepared, needs_download
from storage.sources import Source, source_for
from storage.store import Store
from tasks.wiring.process import apply_settings


def open_store(url: str | None = None) -> Store:
    """Apply the settings to this process and open the store at `url`, or by default the one in the settings."""
    apply_settings()
    return Store(url or get_settings().store)


def browser_link(store: Store, url: str) -> str:
    """The address of a file of a store for links in the Prefect UI: one that a browser can open, if there is one."""
    served = get_settings().files_url
    if served and store.root == open_store().root:
        return f"{served.rstrip('/')}/{quote(store.relative(url))}"
    return store.browser_url(url)


def local_cache(patience: float | None = None) -> Cache:
    """The cache of local copies of prepared datasets; `patience` is how long, in seconds, to wait for room in it."""
    settings = get_settings()
    more = {} if patience is None else {"patience": patience}
    return Cache(settings.scratch / "cache", settings.cache_limit, **more)


def download_source(competition_id: str, raw_dir: str | None = None) -> Source:
    """The source of a competition's download; `raw_dir` takes precedence over Kaggle."""
    folder, settings = Path(raw_dir) if raw_dir else None, get_settings()
    return source_for(registry.get(competition_id), folder, settings.network_timeout, settings.patience)


def already_prepared(
    store: Store, dataset: Dataset, raw_dir: str | None = None, *, verified: bool = True, renew: bool = False
) -> bool:
    """Whether preparing the dataset with the current settings would change nothing; see `is_prepared`."""
    source = download_source(dataset.competition_id, raw_dir)
    params = get_settings().params_of(dataset.competition_id)
    return is_prepared(store, dataset, source, params, verified=verified, renew=renew)


def archive_needed(store: Store, dataset: Dataset, raw_dir: str | None = None, *, renew: bool = False) -> bool:
    """Whether preparing the dataset with the current settings needs its download; see `needs_download`."""
    source = download_source(dataset.competition_id, raw_dir)
    return needs_download(store, dataset, source, get_settings().params_of(dataset.competition_id), renew=renew)
