"""The variables of the environment in the form that all libraries understand: values, proxies, certificates.

Python's libraries read the same variables in different ways. `requests` alone knows networks in NO_PROXY, and `httpx`
fails on those of IPv6; S3's client ignores ALL_PROXY; only some take a proxy without `http://`; and each has its own
variable for certificates. Therefore they are rewritten once in each process, before the libraries read them. Processes
that are started inherit them.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from common.errors import UsageError

_PREFIXES = ("MLEBENCH_", "PREFECT_", "KAGGLE_", "AWS_", "DOCKER_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_CERTIFICATES = (
    "SSL_CERT_FILE",  # Python itself, httpx: language models and Prefect
    "REQUESTS_CA_BUNDLE",  # requests and botocore: Kaggle, Docker, stores
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "PREFECT_API_SSL_CERT_FILE",
)
_DIRECTORIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that may name a directory of certificates by their hashes."""
_MAY_BE_EMPTY = ("PREFECT_API_URL",)
"""Unset, Prefect takes its server from files in the current directory; empty, it takes none (`flows.which_server`)."""
_SCHEMES = ("http", "https", "socks5", "socks5h")
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  # only named: some write it into PREFECT_API_URL
_ADDRESS = re.compile(r"//(?:[^/@\s]*@)?\[?([0-9a-fA-F.:]+?)\]?(?::\d+)?(?:[/?#]|\Z)")

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def settle(environment: MutableMapping[str, str] = os.environ) -> None:
    """Rewrite the variables. Idempotent.

    - Values lose blanks, line ends and quotes around them, which secrets and env files have. Empty variables are unset,
      except those in which emptiness says something; that of the store must not be empty.
    - Each kind of proxy is named in full, in lower and upper case; ALL_PROXY counts for the kinds that are not named.
    - With a proxy, NO_PROXY has this machine, and nothing that a library cannot read: our own servers are here.
    - A bundle of certificates that is named for one library counts for all.

    Raises `UsageError` for an empty store, a proxy that the libraries cannot use, and a bundle that cannot be read.
    """
    for name in list(environment):
        if name.startswith(_PREFIXES) or name.lower() in _PROXIES or name in _CERTIFICATES:
            if (value := bare(environment[name])) or name in _MAY_BE_EMPTY:
                environment[name] = value
            elif name == "MLEBENCH_STORE":  # with the default, nobody would know where the results are
                raise UsageError(
                    "MLEBENCH_STORE is empty; name a directory or s3://bucket/prefix, or unset it for the default "
                    "~/.local/share/mlebench"
                )
            else:
                del environment[name]
    _settle_proxies(environment)
    _settle_certificates(environment)


def bare(value: str) -> str:
    r"""A value without blanks, line ends and quotes around it.

    >>> bare(' "s3://bucket"\r\n'), bare("it's"), bare("''")
    ('s3://bucket', "it's", '')
    """
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1].strip()
    return value


def _settle_proxies(environment: MutableMapping[str, str]) -> None:
    given = {name: environment.get(name) or environment.get(name.upper()) for name in _PROXIES}
    *kinds, no_proxy = _PROXIES
    if not any(given[kind] for kind in kinds):
        return
    for kind in kinds:
        if proxy := given[kind] or given["all_proxy"]:
            _set(environment, kind, _proxy(kind.upper() if given[kind] else "ALL_PROXY", proxy))
    _set(environment, no_proxy, _without_proxy(given[no_proxy] or "", environment))


def _set(environment: MutableMapping[str, str], name: str, value: str) -> None:
    environment[name] = environment[name.upper()] = value


def _proxy(name: str, text: str) -> str:
    """The URL of a proxy: a scheme, what is needed to log in, and the address.

    >>> _proxy("ALL_PROXY", "socks://127.0.0.1:1080/"), _proxy("HTTP_PROXY", "me:p@ss@proxy:3128")
    ('socks5://127.0.0.1:1080', 'http://me:p%40ss@proxy:3128')
    """
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host:
        raise UsageError(
            f"{name} is not the address of a proxy, such as http://proxy:3128 or http://user:password@proxy:3128; "
            "a password has %23 for #, %2F for / and %40 for @"
        )
    scheme = "socks5" if parts.scheme == "socks" else parts.scheme  # desktops write socks:// for SOCKS 5
    if scheme not in _SCHEMES:
        raise UsageError(f"{name} begins with {scheme}://, which does not work here; use one of {', '.join(_SCHEMES)}")
    user = None if parts.username is None else f"{_quoted(parts.username)}:{_quoted(parts.password or '')}@"
    return f"{scheme}://{user or ''}{f'[{host}]' if ':' in host else host}{'' if port is None else f':{port}'}"


def _quoted(text: str) -> str:
    return quote(unquote(text), safe="")


def _without_proxy(text: str, environment: Mapping[str, str]) -> str:
    """The value of NO_PROXY: what it names, in a form that all libraries read, and this machine.

    Networks are kept for those that know them. The addresses in other variables that lie in them are named, too.

    >>> _without_proxy(" *.corp, 10.0.0.0/8 fe80::/10", {"AWS_ENDPOINT_URL": "http://10.1.2.3:9000"})
    '.corp,10.0.0.0/8,10.1.2.3,localhost,127.0.0.1,::1,0.0.0.0'
    >>> _without_proxy("localhost,*", {})
    '*'
    """
    entries, networks = [], []
    for entry in filter(None, re.split(r"[\s,;]+", text)):
        if entry == "*":
            return "*"
        network = _network(entry)
        if network is not None:
            networks.append(network)
        if not isinstance(network, ipaddress.IPv6Network):
            entries.append(re.sub(r"\A\[(.*)\]\Z", r"\1", entry.removeprefix("*")))
    inside = [address for address in _addresses(environment) if _lies_in(address, networks)]
    return ",".join(dict.fromkeys([*entries, *inside, *_LOOPBACK]))


def _network(entry: str) -> _Network | None:
    try:
        return ipaddress.ip_network(entry, strict=False) if "/" in entry else None
    except ValueError:
        return None


def _addresses(environment: Mapping[str, str]) -> Iterator[str]:
    """The IP addresses in the URLs of the environment."""
    for name, value in environment.items():
        if name.startswith(_PREFIXES) and (found := _ADDRESS.search(value)):
            yield found[1]


def _lies_in(address: str, networks: list[_Network]) -> bool:
    try:
        return any(ipaddress.ip_address(address) in network for network in networks)
    except ValueError:
        return False


def _settle_certificates(environment: MutableMapping[str, str]) -> None:
    for name in _CERTIFICATES:
        if path := environment.get(name):
            environment[name] = _certificates(name, Path(path).expanduser())
    named = [environment[name] for name in _CERTIFICATES[:3] if name in environment]
    if bundle := next((path for path in named if not Path(path).is_dir()), None):
        for name in _CERTIFICATES[:2]:
            environment.setdefault(name, bundle)


def _certificates(name: str, path: Path) -> str:
    """The path of a bundle of certificates. Raises `UsageError` if it is none."""
    try:
        if path.is_dir() and name in _DIRECTORIES:
            return str(path)
        if b"-----BEGIN" in path.read_bytes():
            return str(path)
        reason = "it has no certificate in PEM format"
    except OSError as error:
        reason = str(error.strerror)
    raise UsageError(
        f"{name}: {path} cannot be used ({reason}); name the file with the certificates of your authority, or unset it"
    )
