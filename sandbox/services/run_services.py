"""The services of a run: a validation service and an LLM gateway, outside the sandbox but reachable from it.

They run in a process of their own for each run, or for trusted clients in this one. Their persistent state is in the
run's work directory, so a restarted orchestrator reopens them at the same addresses, with the same token and the
remaining budget.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import shutil
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from common import plain_json
from common.guard import HOST, origin
from sandbox.backend import Allowance, ServiceAddresses
from sandbox.errors import BackendError
from sandbox.gateway.prices import version_of_prices
from sandbox.services.tally import Tally, sums_since
from sandbox.validation import endpoints

if TYPE_CHECKING:
    from sandbox.gateway.policy import GatewayPolicy
    from sandbox.services.host import ServiceHost
    from sandbox.services.separate import ProcessLimits, SeparateHost
    from sandbox.validation.checker import Check

logger = logging.getLogger(__name__)

RECORDS = "records"
"""Folder in the work directory; it is kept when the run is started again."""
LOGS = (*endpoints.JOURNALS, "gateway.jsonl", "transcripts.jsonl")
JOURNALS = (*endpoints.JOURNALS, "gateway.jsonl", "gateway-under-way.jsonl")
"""The logs from which the use of the limits is computed."""
STATE_FILE = "services.json"


@dataclass(frozen=True)
class ServiceState:
    """The state of a run's services that survives a restart of their process."""

    token: str = field(default_factory=lambda: f"sk-run-{secrets.token_urlsafe(24)}")
    """The agent's API key for the gateway."""
    since: str = ""
    """ISO time from which on requests count towards the limits."""
    ports: dict[str, int] = field(default_factory=dict)
    """Port of each service, by its name."""

    def write(self, folder: Path) -> None:
        """Write the state to its file atomically, readable by this user only."""
        draft = folder / f"{STATE_FILE}.new"
        draft.touch(mode=0o600)
        draft.write_text(plain_json.dumps(asdict(self)))
        draft.replace(folder / STATE_FILE)


def read_state(folder: Path) -> ServiceState:
    """The state in a run's folder; a new one if there is none."""
    try:
        return ServiceState(**json.loads((folder / STATE_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return ServiceState()


class RunServices:
    """The services of one run: both, one, or none. Open them in a ``with`` statement."""

    def __init__(
        self,
        workdir: Path,
        addresses: ServiceAddresses | None = None,
        *,
        checks: Mapping[str, Check] | None = None,
        gateway: GatewayPolicy | None = None,
        process: ProcessLimits | None = None,
    ) -> None:
        """Configure the services, without opening them.

        Args:
            workdir: the run's work directory; created if missing.
            addresses: where to listen; by default on the loopback.
            checks: what answers the endpoints of the validation service (`sandbox.validation.endpoints`), and how
                often; none for no such service.
            gateway: providers and budget of the gateway; None for no gateway.
            process: limits of the process of the services. Without it they run in a thread of this process, whose
                clients then have to be trusted.
        """
        self.urls: dict[str, str] = {}
        """Base URL of the validation service as the agent reaches it, by the endpoints that it has."""
        self.env: dict[str, str] = {}
        """Environment variables for the agent."""
        self._folder = workdir / RECORDS
        self._addresses = addresses or ServiceAddresses()
        self._checks, self._policy = dict(checks or {}), gateway
        self._tally = Tally(self._folder)
        self._process = process
        self._host: ServiceHost | SeparateHost | None = None
        self._state = ServiceState()

    def __enter__(self) -> Self:
        """Open the services.

        Raises:
            BackendError: an address or a folder cannot be used.
        """
        try:
            self._open()
        except OSError as error:
            self.close()
            raise BackendError(f"the services of the run cannot be opened in {self._folder}: {error}") from error
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the services. Requests under way are aborted and logged."""
        if self._host is not None:
            self._host.close()
            self._host = None

    def reset_limits(self) -> None:
        """Count only requests from now on towards the limits, because the run has been started from scratch."""
        self._state = replace(self._state, since=datetime.now(UTC).isoformat())
        self._state.write(self._folder)
        if self._host is not None:
            self._host.reset_limits()

    @property
    def validation_url(self) -> str | None:
        """Base URL of the validation service; None if the agent cannot validate."""
        return self.urls.get("validation")

    @property
    def allowance(self) -> Allowance:
        """The limits that the agent's instructions state."""
        limits = {name: check.limits for name, check in self._checks.items()}
        budget = self._policy.budget if self._policy is not None else None
        return Allowance(
            language_models=self._policy is not None,
            llm_requests=budget.requests if budget else None,
            llm_tokens=budget.tokens if budget else None,
            llm_dollars=budget.dollars if budget else None,
            **{f"{name}_calls": limit.calls for name, limit in limits.items()},
            **{f"{name}_calls_per_minute": limit.calls_per_minute for name, limit in limits.items()},
        )

    @property
    def since(self) -> str:
        """ISO time from which on requests count towards the limits."""
        return self._state.since

    @property
    def remaining(self) -> Allowance:
        """The rest of the limits, for an agent that continues."""
        allowance, used = self.allowance, sums_since(self._folder, self._state.since)

        def remainder(limit: float | None, amount: float) -> Any:
            return None if limit is None else max(limit - amount, 0)

        calls: dict[str, Any] = {
            f"{name}_calls": max(check.limits.calls - used.calls[name], 0) for name, check in self._checks.items()
        }
        return replace(
            allowance,
            llm_requests=remainder(allowance.llm_requests, used.requests),
            llm_tokens=remainder(allowance.llm_tokens, used.tokens),
            llm_dollars=remainder(allowance.llm_dollars, used.dollars),
            **calls,
        )

    def files(self) -> dict[str, Path]:
        """The logs that the services have written, by name."""
        return {name: self._folder / name for name in LOGS if (self._folder / name).is_file()}

    def counts(self) -> dict[str, Any]:
        """The numbers of validations, requests and tokens and their cost so far, for the run's record."""
        sums = self._tally.sums()
        return {
            **{f"{name}_calls": sums.calls[name] for name in ("validation", *self._checks)},
            "gateway_requests": sums.requests,
            "gateway_tokens": sums.tokens,
            "gateway_cost_usd": None if sums.unpriced else round(sums.dollars, 6),
            "prices": version_of_prices() if self._policy is not None else None,
        }

    def _open(self) -> None:
        from sandbox.services.host import HostSpec, ServiceHost
        from sandbox.services.separate import SeparateHost

        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in self._folder.glob("upload-*"):  # a process that was killed leaves them
            shutil.rmtree(leftover)
        self._state = read_state(self._folder)
        listeners: dict[str, socket.socket] = {}
        with contextlib.ExitStack() as opened:
            if self._checks:
                url = self._listen("validation", self._addresses.validation_url, listeners, opened)
                self.urls = dict.fromkeys(self._checks, url)
            if self._policy is not None:
                url = self._listen("gateway", self._addresses.gateway_url, listeners, opened)
                self.env = _env(url, self._state.token, {provider.api for provider in self._policy.providers.values()})
            self._state.write(self._folder)
            spec = HostSpec(
                folder=self._folder,
                token=self._state.token,
                since=self._state.since,
                limits={name: check.limits for name, check in self._checks.items()},
                gateway=self._policy,
            )
            checkers = {name: check.checker for name, check in self._checks.items()}
            if self._process is not None:
                self._host = SeparateHost(spec, listeners, checkers, self._process)
            else:
                self._host = ServiceHost(spec, listeners, checkers)
            opened.pop_all()

    def _listen(self, name: str, url: str, listeners: dict[str, socket.socket], opened: contextlib.ExitStack) -> str:
        """Open the socket of a service; returns its URL for the agent, which is `url` where Unix sockets are used."""
        from sandbox.serving import listen_tcp, listen_unix

        if self._addresses.sockets is not None:
            listeners[name] = opened.enter_context(listen_unix(self._addresses.sockets / f"{name}.sock"))
            return url
        earlier_port = self._state.ports.get(name)
        listeners[name] = opened.enter_context(listen_tcp(HOST, earlier_port))
        port = listeners[name].getsockname()[1]
        if earlier_port and port != earlier_port:
            logger.warning("port %d is taken: if the run is in progress, it lost its %s service", earlier_port, name)
        self._state = replace(self._state, ports={**self._state.ports, name: port})
        return origin(port)


def take_over(workdir: Path, earlier: Path, since: str) -> None:
    """Let the services of a run that continues count what was used before. Call it before they are opened.

    Args:
        workdir: the run's work directory, which may have journals of its own.
        earlier: folder with the journals that were kept elsewhere.
        since: ISO time from which on requests count towards the limits.
    """
    folder = workdir / RECORDS
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    transcripts = LOGS[-1]  # may be large, so the longer log is kept: it begins with the records of the shorter one
    if (earlier / transcripts).is_file():
        own_size = (folder / transcripts).stat().st_size if (folder / transcripts).exists() else 0
        if (earlier / transcripts).stat().st_size > own_size:
            shutil.copyfile(earlier / transcripts, folder / transcripts)
    for name in JOURNALS:
        if not (earlier / name).is_file():
            continue
        with (folder / name).open("a+b") as own_journal:
            own_journal.seek(0)
            lines = own_journal.read().splitlines(keepends=True)
            earlier_lines = set((earlier / name).read_bytes().splitlines(keepends=True))
            (folder / f"{name}.new").write_bytes(
                (earlier / name).read_bytes() + b"".join(line for line in lines if line not in earlier_lines)
            )
        (folder / f"{name}.new").replace(folder / name)
    replace(read_state(folder), since=since).write(folder)


def _env(url: str, token: str, apis: set[str]) -> dict[str, str]:
    """The environment variables from which the official clients, and most others, read address and key."""
    env: dict[str, str] = {}
    if "openai" in apis:
        env |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": token}
    if "anthropic" in apis:
        env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": token}
    if "gemini" in apis:
        env |= {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_BASE_URL": url, "GEMINI_API_KEY": token}
    return env
