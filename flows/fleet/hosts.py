"""The hosts of a work pool describe themselves in Prefect variables, one for each, which count while it is online."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sandbox.host.placement import Host

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

_PREFIX = "mlebench_host_"
_SET_FIELDS = ("labels", "backends")
_PAGE_ITEMS = 200


def variable_name(pool: str, host: str) -> str:
    """The name of a host's variable: of lower-case letters, digits and underscores, and another one in each pool.

    >>> variable_name("agents", "Node-7.local")
    'mlebench_host_node_7_local_8a08e5'
    """
    return f"{_prefix(host)}_{hashlib.blake2b(f'{pool} {host}'.encode(), digest_size=3).hexdigest()}"


def _prefix(host: str) -> str:
    return _PREFIX + re.sub(r"[^a-z0-9]+", "_", host.lower())[:60]


def to_json(pool: str, host: Host) -> dict[str, Any]:
    """The value of a host's variable."""
    return {"pool": pool, **asdict(host), **{name: sorted(getattr(host, name)) for name in _SET_FIELDS}}


def from_json(value: Any, pool: str) -> Host | None:
    """The host of a variable; None if it is of another pool, or if another version has written it."""
    try:
        if value.pop("pool") != pool:
            return None
        fields: dict[str, Any] = {
            name: frozenset(field) if name in _SET_FIELDS else field for name, field in value.items()
        }
        return Host(**fields)
    except (AttributeError, KeyError, TypeError):
        return None


class Advertisement:
    """Keeps the variable of this host up to date."""

    def __init__(self, pool: str) -> None:
        self._pool, self._shown = pool, Host("", slots=0)

    def show(self, client: SyncPrefectClient, host: Host) -> None:
        """Update the variable if the host offers something else than it says."""
        if host == self._shown:
            return
        from prefect.client.schemas.actions import VariableCreate, VariableUpdate

        name, value = variable_name(self._pool, host.name), to_json(self._pool, host)
        if client.read_variable_by_name(name) is None:
            client.create_variable(VariableCreate(name=name, value=value, tags=["mlebench"]))
        else:
            client.update_variable(VariableUpdate(name=name, value=value))
        self._shown = host


def online(client: SyncPrefectClient, pool: str) -> list[Host]:
    """The hosts whose workers are online, as they describe themselves, sorted by name."""
    workers = _pages(lambda offset: client.read_workers_for_work_pool(pool, offset=offset, limit=_PAGE_ITEMS))
    online_names = {worker.name for worker in workers if worker.status is not None and worker.status.value == "ONLINE"}
    name_filter = {"name": {"like_": f"{_PREFIX}%"}}

    def page(offset: int) -> list[Any]:
        body = {"variables": name_filter, "limit": _PAGE_ITEMS, "offset": offset}
        variables: list[Any] = client.request("POST", "/variables/filter", json=body).json()
        return variables

    hosts = [from_json(variable["value"], pool) for variable in _pages(page)]
    return sorted((host for host in hosts if host and host.name in online_names), key=lambda host: host.name)


def _pages(read: Callable[[int], list[Any]]) -> list[Any]:
    items: list[Any] = []
    while True:
        page = read(len(items))
        items += page
        if len(page) < _PAGE_ITEMS:
            return items
