"""The addresses that agents may reach through the proxy."""

from __future__ import annotations

import ipaddress
import socket

import psutil

from sandbox.isolation import Network

_NOT_PUBLIC = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20"))
)
"""Networks for special purposes, 6to4 (both), Teredo and others, documentation. Some versions of Python take addresses
of them for global ones."""
_GLOBAL = ipaddress.ip_network("2000::/3")
"""All other IPv6 addresses are local, or stand for IPv4 addresses, private ones included (NAT64, mapped, ...)."""


def is_public(address: str) -> bool:
    """Whether an address is on the public internet.

    >>> is_public("1.1.1.1"), is_public("169.254.169.254"), is_public("64:ff9b::a9fe:a9fe")
    (True, False, False)
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    special = any(parsed in block for block in _NOT_PUBLIC) or (parsed.version == 6 and parsed not in _GLOBAL)
    return parsed.is_global and not parsed.is_multicast and not special


def is_loopback(address: str) -> bool:
    """Whether an address is that of the loopback interface, or stands for it.

    >>> is_loopback("127.1.2.3"), is_loopback("::ffff:0.0.0.0"), is_loopback("10.0.0.1")
    (True, True, False)
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    return parsed.is_loopback or parsed.is_unspecified


def _own_addresses() -> set[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Addresses of this machine. Its firewall does not see connections from itself."""
    return {
        ipaddress.ip_address(interface_address.address.partition("%")[0])
        for addresses in psutil.net_if_addrs().values()
        for interface_address in addresses
        if interface_address.family in (socket.AF_INET, socket.AF_INET6)
    }


def why_not(address: str, policy: Network) -> str:
    """Why an address may not be reached; empty if it may be."""
    if policy == "private":
        return "is this machine's loopback" if is_loopback(address) else ""
    if not is_public(address):
        return "is private"
    return "is this machine's own" if ipaddress.ip_address(address.partition("%")[0]) in _own_addresses() else ""
