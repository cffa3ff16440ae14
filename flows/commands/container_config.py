"""The container configuration of the published tool, for `mlebench run --container-config`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import UsageError
from common.plain_json import read_json
from common.units import parse_limit

_REPLACEMENTS = {
    "gpus": "set limits.gpus in the agent's agent.yaml",
    "shm_size": "set limits.shm_bytes in the agent's agent.yaml",
    "privileged": "use --allow-privileged",
    "network": "use --network",
    "network_mode": "use --network",
}


@dataclass(frozen=True)
class ContainerConfig:
    """The limits in the file, None where it has none: memory and disk in bytes, CPU cores, and the runtime.

    `unused` explains the entries that have no effect.
    """

    memory: int | None = None
    cpus: int | None = None
    disk: int | None = None
    runtime: str | None = None
    unused: tuple[str, ...] = ()


def read_container_config(path: Path) -> ContainerConfig:
    """Read a JSON file with arguments of the Docker client. Raises `UsageError` if it is not one."""
    content = read_json(path, f"--container-config {path}")
    if not isinstance(content, dict):
        raise UsageError(f"--container-config {path} is not a JSON object")
    limits: dict[str, Any] = {}
    unused = []
    for name, value in content.items():
        match name:
            case "mem_limit":
                limits["memory"] = _limit("memory_bytes", value, name, path)
            case "nano_cpus":
                limits["cpus"] = math.ceil(_number(value, name, path) / 1e9)
            case "storage_opt" if isinstance(value, dict) and set(value) == {"size"}:
                limits["disk"] = _limit("disk_bytes", value["size"], "storage_opt.size", path)
            case "runtime":
                limits["runtime"] = str(value)
            case _:
                unused.append(
                    f"`{name}` of {path.name} has no effect: {_REPLACEMENTS.get(name, 'the sandbox decides it')}"
                )
    return ContainerConfig(**limits, unused=tuple(unused))


def _number(value: Any, name: str, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise UsageError(f"{path}: {name} must be a positive number, not {value!r}")
    return float(value)


def _limit(limit: str, value: Any, name: str, path: Path) -> int:
    try:
        return int(parse_limit(limit, value))
    except ValueError as error:
        raise UsageError(f"{path}: {name}: {error}") from None
