"""The services of a run: a validation service and an LLM gateway, outside the sandbox but reachable from it.

They run in the process that waits for the run. Their persistent state is in the run's work directory, so a restarted
orchestrator reopens them at the same addresses, with the same token and the remaining budget.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sandbox.backend import Allowance, ServiceAddresses
from sandbox.errors import BackendError
from sandbox.services.state import ServiceState, read_state

if TYPE_CHECKING:
    from starlette.routing import Route

    from sandbox.gateway.policy import GatewayPolicy
    from sandbox.gateway.service import GatewayService
    from sandbox.serving import ServerThread
    from sandbox.validation.checker import SubmissionChecker
    from sandbox.validation.service import ValidationLimits, ValidationService

logger = logging.getLogger(__name__)

RECORDS = "records"
"""Folder in the work directory; it is kept when the run is started again."""
LOGS = ("validation.jsonl", "gateway.jsonl", "transcripts.jsonl")


class RunServices:
    """The services of one run: both, one, or none. Open them in a ``with`` statement."""

    def __init__(
        self,
        workdir: Path,
        addresses: ServiceAddresses | None = None,
        *,
        checker: SubmissionChecker | None = None,
        validation_limits: ValidationLimits | None = None,
        gateway: GatewayPolicy | None = None,
    ) -> None:
        """Configure the services, without opening them.

        Args:
            workdir: the run's work directory; created if missing.
            addresses: where to listen; by default on 127.0.0.1.
            checker: checks submissions; None for no validation service.
            validation_limits: how many submissions the agent may validate, and of what size.
            gateway: providers and budget of the gateway; None for no gateway.
        """
        self.validation_url: str | None = None
        self.env: dict[str, str] = {}
        """Environment variables for the agent."""
        self._folder = workdir / RECORDS
        self._addresses = addresses or ServiceAddresses()
        self._checker, self._limits, self._policy = checker, validation_limits, gateway
        self._validation: ValidationService | None = None
        self._gateway: GatewayService | None = None
        self._thread: ServerThread | None = None
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
        if self._thread is not None:
            self._thread.close(self._gateway.close if self._gateway else None)
            self._thread = None
        if self._validation is not None:
            self._validation.close()

    def reset_limits(self) -> None:
        """Count only requests from now on towards the limits, because the run has been started from scratch."""
        self._state = replace(self._state, since=datetime.now(UTC).isoformat())
        self._state.write(self._folder)
        if self._validation is not None:
            self._validation.reset_limits()
        if self._gateway is not None:
            self._gateway.budget.reset()

    @property
    def allowance(self) -> Allowance:
        """The limits that the agent is told about."""
        limits = self._limits if self._checker is not None else None
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
        """The logs that the services have written, by name."""
        return {name: self._folder / name for name in LOGS if (self._folder / name).is_file()}

    def counts(self) -> dict[str, Any]:
        """The numbers of validations, requests and tokens and their cost so far, for the run's record."""
        spent = self._gateway.budget.total if self._gateway else None
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
        self._state = read_state(self._folder)
        if self._checker is not None:
            from sandbox.validation.service import ValidationLimits, ValidationService

            limits = self._limits or ValidationLimits()
            self._validation = ValidationService(self._checker, self._folder, limits, self._state.since)
            self.validation_url = self._serve("validation", self._validation.routes, self._addresses.validation_url)
        if self._policy is not None:
            from sandbox.gateway.service import GatewayService

            self._gateway = GatewayService(self._policy, self._folder, self._state.token, self._state.since)
            url = self._serve("gateway", self._gateway.routes, self._addresses.gateway_url)
            self.env = _env(url, self._state.token, {each.api for each in self._policy.providers.values()})
        self._state.write(self._folder)

    def _serve(self, name: str, routes: list[Route], url: str) -> str:
        """Open one service; returns its URL for the agent, which is `url` where sockets are used."""
        from starlette.applications import Starlette

        from sandbox.serving import ServerThread, listen_tcp, listen_unix

        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        if self._addresses.sockets is not None:
            listener = listen_unix(self._addresses.sockets / f"{name}.sock")
        else:
            wanted = self._state.ports.get(name)
            listener = listen_tcp("127.0.0.1", wanted)
            port = listener.getsockname()[1]
            if wanted and port != wanted:
                logger.warning("port %d is taken: if the run is in progress, it lost its %s service", wanted, name)
            self._state = replace(self._state, ports={**self._state.ports, name: port})
            url = f"http://127.0.0.1:{port}"
        if self._thread is None:
            self._thread = ServerThread(f"services of {self._folder.parent.name}")
        self._thread.serve(app, listener)
        return url


def _env(url: str, token: str, apis: set[str]) -> dict[str, str]:
    """The environment variables from which the official clients, and most others, read address and key."""
    env: dict[str, str] = {}
    if "openai" in apis:
        env |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": token}
    if "anthropic" in apis:
        env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": token}
    return env
