"""The services of one run: a validation service and an LLM gateway, outside the agent's world but within its reach.

They live in this process for as long as it waits for the run. What they must remember lies in the run's work directory,
so an orchestrator that was killed and comes back opens them at the same addresses, with the same token and with what is
left of the budget.
"""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sandbox.backend import Allowance
from sandbox.errors import BackendError

if TYPE_CHECKING:
    from starlette.routing import Route

    from sandbox.gateway.policy import GatewayPolicy
    from sandbox.gateway.service import GatewayService
    from sandbox.serving import Served
    from sandbox.validation.check import Check
    from sandbox.validation.service import ValidationLimits, ValidationService

logger = logging.getLogger(__name__)

RECORDS = "records"
"""Folder in the work directory that outlives a fresh start of the run."""
JOURNALS = ("validation.jsonl", "gateway.jsonl", "transcripts.jsonl")


@dataclass(frozen=True)
class Reach:
    """How a run reaches the services: on 127.0.0.1, or by Unix sockets that the backend forwards from its network."""

    sockets: Path | None = None
    """Folder for ``validation.sock`` and ``gateway.sock``; whoever may enter it may connect. None: TCP on 127.0.0.1."""
    validation_url: str = ""
    """As the agent sees it, where sockets are used."""
    gateway_url: str = ""


@dataclass(frozen=True)
class _State:
    """What has to be the same after a restart."""

    token: str
    since: str
    ports: dict[str, int]


class RunServices:
    """Both services of one run, or one, or none; open them in a ``with`` statement."""

    def __init__(
        self,
        workdir: Path,
        reach: Reach | None = None,
        *,
        check: Check | None = None,
        validation_limits: ValidationLimits | None = None,
        gateway: GatewayPolicy | None = None,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            workdir: of the run; created if missing.
            reach: how the run reaches the services.
            check: judges submissions; None for no validation service.
            validation_limits: how often an agent may ask.
            gateway: what a run may ask of language models; None for no gateway.
        """
        self.validation_url: str | None = None
        self.env: dict[str, str] = {}
        """For the agent."""
        self._folder = workdir / RECORDS
        self._reach = reach or Reach()
        self._check, self._limits, self._policy = check, validation_limits, gateway
        self._validation: ValidationService | None = None
        self._gateway: GatewayService | None = None
        self._served: list[Served] = []
        self._state = _State("", "", {})

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them."""
        self.close()

    def close(self) -> None:
        """Close the services; what was under way is broken off and written down."""
        if self._served:
            from sandbox.serving import run, stop_all

            run(stop_all(self._served))
            self._served = []
            if self._gateway is not None:
                run(self._gateway.close())
        if self._validation is not None:
            self._validation.close()

    def begin_anew(self) -> None:
        """The run has begun in a clean world: limits and budget count from now."""
        self._write(replace(self._state, since=datetime.now(UTC).isoformat()))
        if self._validation is not None:
            self._validation.begin_anew()
        if self._gateway is not None:
            self._gateway.ledger.begin_anew()

    @property
    def allowance(self) -> Allowance:
        """What the agent is to be told of its limits."""
        limits = self._limits if self._check is not None else None
        budget = self._policy.budget if self._policy is not None else None
        return Allowance(
            language_models=self._policy is not None,
            llm_requests=budget.requests if budget else None,
            llm_tokens=budget.tokens if budget else None,
            llm_dollars=budget.dollars if budget else None,
            validation_calls=limits.calls if limits else None,
            validation_calls_per_minute=limits.calls_per_minute if limits else None,
        )

    def files(self) -> dict[str, Path]:
        """What the services wrote down, by name."""
        return {name: self._folder / name for name in JOURNALS if (self._folder / name).is_file()}

    def counts(self) -> dict[str, Any]:
        """What the run used of them, for its record."""
        spent = self._gateway.ledger.ever if self._gateway else None
        cost = spent.cost if spent else 0.0
        return {
            "validation_calls": self._validation.calls if self._validation else 0,
            "gateway_requests": spent.requests if spent else 0,
            "gateway_tokens": spent.tokens if spent else 0,
            "gateway_cost_usd": None if cost is None else round(cost, 6),
        }

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in self._folder.glob("upload-*/*"):  # of a process that was killed
            leftover.unlink()
        self._state = self._read() or _State(f"sk-run-{secrets.token_urlsafe(24)}", "", {})
        if self._check is not None:
            from sandbox.validation.service import ValidationLimits, ValidationService

            limits = self._limits or ValidationLimits()
            self._validation = ValidationService(self._check, self._folder, limits, self._state.since)
            self.validation_url = self._serve("validation", self._validation.routes, self._reach.validation_url)
        if self._policy is not None:
            from sandbox.gateway.service import GatewayService

            self._gateway = GatewayService(self._policy, self._folder, self._state.token, self._state.since)
            url = self._serve("gateway", self._gateway.routes, self._reach.gateway_url)
            self.env = _env(url, self._state.token, {each.api for each in self._policy.providers.values()})
        self._write(self._state)

    def _serve(self, name: str, routes: list[Route], seen_as: str) -> str:
        """Open one service; returns its URL as the agent sees it."""
        from starlette.applications import Starlette

        from sandbox.serving import listen_tcp, listen_unix, serve

        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        if self._reach.sockets is not None:
            self._served.append(serve(app, listen_unix(self._reach.sockets / f"{name}.sock")))
            return seen_as
        wanted = self._state.ports.get(name)
        listener = listen_tcp("127.0.0.1", wanted)
        port = listener.getsockname()[1]
        if wanted and port != wanted:
            logger.warning("port %d is taken: a run that goes on no longer reaches its %s service", wanted, name)
        self._state = replace(self._state, ports={**self._state.ports, name: port})
        self._served.append(serve(app, listener))
        return f"http://127.0.0.1:{port}"

    def _read(self) -> _State | None:
        try:
            return _State(**json.loads((self._folder / "services.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _write(self, state: _State) -> None:
        self._state = state
        draft = self._folder / "services.json.new"
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(self._folder / "services.json")


def _env(url: str, token: str, apis: set[str]) -> dict[str, str]:
    """What the official clients, and most that imitate them, read."""
    env: dict[str, str] = {}
    if "openai" in apis:
        env |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": token}
    if "anthropic" in apis:
        env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": token}
    return env
