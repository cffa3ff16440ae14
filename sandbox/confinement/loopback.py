"""The network of an isolated agent: a loopback interface, on whose ports a forwarder leads to the run's services.

The services (validation, LLM gateway, proxy) listen on Unix sockets of this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.host.folder import socket_folder
from sandbox.isolation import Network

if TYPE_CHECKING:  # the supervisor stays small: no pydantic at run time
    from sandbox.backend import ServiceAddresses

HOST = "127.0.0.1"
ALIAS = "services"
HOSTNAME = "agent"
"""Other names of 127.0.0.1 there. Programs look up the address of their own machine, too."""
PROXIED: tuple[Network, ...] = ("allowlist", "open", "private")
"""Policies under which agents reach other hosts, through a proxy."""
VALIDATION_PORT, GATEWAY_PORT, PROXY_PORT = 5000, 8000, 3128
PROXY_SOCKET = "proxy.sock"
SOCKETS = {VALIDATION_PORT: "validation.sock", GATEWAY_PORT: "gateway.sock", PROXY_PORT: PROXY_SOCKET}
NAMES = {
    "hosts": f"{HOST} localhost {ALIAS} {HOSTNAME}\n::1 localhost\n",
    "resolv.conf": "nameserver 192.0.2.1\n",
}
"""Files of an isolated agent in /etc, so that it does not learn the names and name servers of the machine. Its own does
not exist."""
PROGRAM = Path(__file__).with_name("forward.py")
"""The forwarder's program."""


def service_addresses(workdir: Path) -> ServiceAddresses:
    """The sockets at which the services of a run listen, and their URLs for the agent."""
    from sandbox.backend import ServiceAddresses

    return ServiceAddresses(socket_folder(workdir), f"http://{HOST}:{VALIDATION_PORT}", f"http://{HOST}:{GATEWAY_PORT}")


def proxy_variables(policy: Network) -> dict[str, str]:
    """The environment variables by which programs find the proxy, if the policy has one."""
    if policy not in PROXIED:
        return {}
    proxy = f"http://{HOST}:{PROXY_PORT}"
    return {
        **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), proxy),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), f"{ALIAS},localhost,{HOST}"),
    }
