"""The servers of a run's services, in a thread of this process."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from common.guard import Guard, names
from sandbox.gateway.policy import GatewayPolicy
from sandbox.limits import ValidationLimits
from sandbox.validation.checker import Check, SubmissionChecker

if TYPE_CHECKING:
    from sandbox.gateway.service import GatewayService
    from sandbox.validation.service import ValidationService


@dataclass(frozen=True)
class HostSpec:
    """The configuration of the servers, without their sockets and the checkers. It can be pickled."""

    folder: Path
    """The folder in which the services write their journals."""
    token: str
    since: str
    """ISO time from which on requests count towards the limits."""
    limits: Mapping[str, ValidationLimits] = field(default_factory=dict)
    """The limits of each endpoint of the validation service (`sandbox.validation.endpoints`)."""
    gateway: GatewayPolicy | None = None


class ServiceHost:
    """Serves until it is closed. `listeners` are by name of the service, `checkers` by that of the endpoint."""

    def __init__(
        self, spec: HostSpec, listeners: dict[str, socket.socket], checkers: Mapping[str, SubmissionChecker]
    ) -> None:
        from starlette.applications import Starlette

        from sandbox.serving import ServerThread

        self._gateway: GatewayService | None = None
        self._validation: ValidationService | None = None
        self._thread = ServerThread(f"services of {spec.folder.parent.name}")
        routes = {}
        if spec.limits:
            from sandbox.validation.service import ValidationService

            checks = {name: Check(checkers[name], limits) for name, limits in spec.limits.items()}
            self._validation = ValidationService(checks, spec.folder, spec.since)
            routes["validation"] = self._validation.routes
        if spec.gateway is not None:
            from sandbox.gateway.service import GatewayService

            self._gateway = GatewayService(spec.gateway, spec.folder, spec.token, spec.since)
            routes["gateway"] = self._gateway.routes
        for name, listener in listeners.items():
            app = Starlette(routes=routes[name])
            app.router.redirect_slashes = False
            # Only the run reaches a socket in a folder, but all pages in a browser of this machine reach a port.
            if listener.family == socket.AF_INET:
                guarded = Guard(app, names(listener.getsockname()[1]), any_host=True)
                self._thread.serve(guarded, listener)
            else:
                self._thread.serve(app, listener)

    def responds(self, seconds: float) -> bool:
        """Whether the servers do anything within `seconds`."""
        return self._thread.responds(seconds)

    def reset_limits(self) -> None:
        """Count only requests from now on towards the limits."""
        if self._validation is not None:
            self._validation.reset_limits()
        if self._gateway is not None:
            self._gateway.budget.reset()

    def close(self) -> None:
        """Stop serving. Requests under way are aborted and logged."""
        self._thread.close(self._gateway.close if self._gateway else None)
        if self._validation is not None:
            self._validation.close()
