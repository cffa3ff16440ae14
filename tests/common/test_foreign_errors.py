"""Every class of error of every library that talks to a server: whom it blames, and what it advises."""

from __future__ import annotations

import errno
import importlib
import inspect
import socket
import ssl
import string
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.causes import CAUSES, cause_of, explain, waiting_for
from sandbox.docker.engine import engine_errors
from sandbox.errors import BackendError
from tests.certificates import self_signed

ADVICE = {
    "store": "AWS_ENDPOINT_URL",
    "engine": "Docker engine",
    "prefect": "PREFECT_API_URL",
    "scheduler": "Dask",
    "network": "network",
    "dns": "name server",
    "tls": "certificate",
    "limits": "limits",
}
"""What the remedies of these causes name, and no other one does."""

# The kind of all errors of a module, and of those that are another. What is not of a server is a bug.
MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "docker.errors": (
        "engine",
        {
            **dict.fromkeys(("InvalidArgument", "NullResource", "DeprecatedMethod", "StreamParseError"), "bug"),
            **dict.fromkeys(("BuildError", "ContainerError", "InvalidConfigFile", "InvalidRepository"), "user input"),
            **dict.fromkeys(("ContextException", "ContextNotFound", "TLSParameterError"), "user input"),
        },
    ),
    "requests.exceptions": (
        "network",
        {
            **dict.fromkeys(("InvalidURL", "InvalidProxyURL", "MissingSchema", "InvalidSchema"), "user input"),
            **dict.fromkeys(("InvalidHeader",), "user input"),
            **dict.fromkeys(("URLRequired", "StreamConsumedError"), "bug"),
        },
    ),
    "urllib3.exceptions": (
        "network",
        {
            **dict.fromkeys(("LocationValueError", "LocationParseError", "URLSchemeUnknown"), "user input"),
            **dict.fromkeys(("ProxySchemeUnknown",), "user input"),
            "NameResolutionError": "dns",
            "ProxySchemeUnsupported": "bug",
        },
    ),
    "http.client": ("network", {"InvalidURL": "user input"}),
    "urllib.error": ("network", {}),
    "httpx": (
        "prefect",
        {
            **dict.fromkeys(("InvalidURL", "UnsupportedProtocol"), "user input"),
            **dict.fromkeys(("StreamError", "StreamClosed", "StreamConsumed", "RequestNotRead"), "bug"),
            **dict.fromkeys(("ResponseNotRead", "CookieConflict", "LocalProtocolError"), "bug"),
        },
    ),
    # The server's database: in our processes its errors are answers of the server.
    "prefect.exceptions": ("bug", {"PrefectHTTPStatusError": "prefect"}),
    "asyncpg.exceptions": ("bug", {}),
    "sqlalchemy.exc": ("bug", {}),
    "sqlite3": ("bug", {}),
    "aiohttp.client_exceptions": (
        "store",
        {
            **dict.fromkeys(("InvalidURL", "InvalidUrlClientError", "InvalidUrlRedirectClientError"), "user input"),
            **dict.fromkeys(("NonHttpUrlClientError", "NonHttpUrlRedirectClientError"), "user input"),
            **dict.fromkeys(("ClientConnectorCertificateError", "ServerFingerprintMismatch"), "tls"),
            "ClientConnectorDNSError": "dns",
            "WSMessageTypeError": "bug",
        },
    ),
    "fsspec.exceptions": ("store", {"BlocksizeMismatchError": "bug"}),
    "distributed.comm.core": ("scheduler", {}),
    "distributed.core": ("scheduler", {}),
    "distributed.client": ("scheduler", {"AllExit": "bug", "ClosedClientError": "bug"}),
    "distributed.scheduler": ("scheduler", {"KilledWorker": "memory"}),
    "distributed.exceptions": ("scheduler", {"Reschedule": "bug"}),
    "ssl": (
        "tls",
        {
            **dict.fromkeys(("SSLEOFError", "SSLZeroReturnError", "SSLSyscallError"), "network"),
            **dict.fromkeys(("SSLWantReadError", "SSLWantWriteError"), "network"),
        },
    ),
    "socket": ("dns", {"_GiveupOnSendfile": "bug"}),
    "botocore.exceptions": (
        "bug",
        {
            **dict.fromkeys(("ClientError", "EventStreamError", "IncompleteReadError"), "store"),
            **dict.fromkeys(("ConnectionError", "ConnectTimeoutError", "EndpointConnectionError"), "store"),
            **dict.fromkeys(("ProxyConnectionError", "SSLError", "HTTPClientError", "ReadTimeoutError"), "store"),
            **dict.fromkeys(("ConnectionClosedError", "ResponseStreamingError", "ChecksumError"), "store"),
            **dict.fromkeys(("FlexibleChecksumError",), "store"),
            **dict.fromkeys(("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"), "refused"),
            **dict.fromkeys(("MetadataRetrievalError", "TokenRetrievalError", "NoAuthTokenError"), "refused"),
            **dict.fromkeys(("SSOError", "SSOTokenLoadError", "UnauthorizedSSOTokenError"), "refused"),
            **dict.fromkeys(("LoginError", "LoginRefreshRequired", "LoginTokenLoadError"), "refused"),
            **dict.fromkeys(("LoginInsufficientPermissions", "LoginAuthorizationCodeError"), "refused"),
            **dict.fromkeys(("ProfileNotFound", "NoRegionError", "ConfigNotFound", "ConfigParseError"), "user input"),
            **dict.fromkeys(("InvalidConfigError", "InfiniteLoopConfigError", "ParamValidationError"), "user input"),
            **dict.fromkeys(("InvalidRegionError", "InvalidProxiesConfigError"), "user input"),
        },
    ),
}


def classes(module: str) -> list[type[Exception]]:
    """The classes of errors that are defined in a module."""
    found = {each for _, each in inspect.getmembers(importlib.import_module(module), inspect.isclass)}
    own = [each for each in found if each.__module__.startswith(module) and issubclass(each, Exception)]
    return sorted((each for each in own if not issubclass(each, Warning)), key=lambda each: each.__name__)


def made(of: type[Exception]) -> Exception:
    """An error of a class, as far as its constructor can be guessed; else one without attributes."""
    if of is urllib.error.HTTPError:  # its constructor takes anything
        return urllib.error.HTTPError("http://x", 500, "x", {}, None)  # type: ignore[arg-type]
    names = [name for _, name, _, _ in string.Formatter().parse(str(getattr(of, "fmt", ""))) if name]
    tries: list[Callable[[], Exception]] = [lambda: of(**dict.fromkeys(names, "x")), lambda: of("x"), lambda: of()]
    for each in tries[0 if names else 1 :]:
        try:
            error = each()
            str(error)
        except Exception:  # another constructor
            continue
        return error
    bare = type(of.__name__, (of,), {"__str__": lambda _: "x", "__init__": lambda _: None, "__module__": of.__module__})
    return bare()


@pytest.mark.parametrize("module", MODULES)
def test_every_error_of_a_library_blames_what_the_library_talks_to(module: str) -> None:
    usual, others = MODULES[module]
    found = {each.__name__: cause_of(made(each)).kind for each in classes(module)}
    assert found
    assert found == {name: others.get(name, usual) for name in found}
    assert set(others) - set(found) == set(), "classes that are gone"


def test_each_remedy_names_its_own_server_only() -> None:
    for kind, name in ADVICE.items():
        assert name in CAUSES[kind].remedy + waiting_for(made_of(kind), 60)  # type: ignore[index]
        others = {each for other, each in ADVICE.items() if other not in (kind, "network")} - {name}
        assert not [each for each in others if each in CAUSES[kind].remedy]  # type: ignore[index]


def made_of(kind: str) -> Exception:
    """An error of a kind."""
    from common.errors import UserError

    return UserError("x").of_kind(kind)  # type: ignore[arg-type]


# What each server's status means. An answer never makes an error one of another server.
STATUS = {
    400: "user input",
    401: "refused",
    403: "refused",
    404: "user input",
    407: "refused",
    408: None,
    409: None,
    413: "user input",
    425: None,
    429: None,
    500: None,
    502: None,
    503: None,
    504: None,
    507: "disk full",
}
"""None: the server itself."""


def answers(status: int) -> dict[str, Exception]:
    """Errors of all libraries for an answer, by the kind of their server."""
    import aiohttp
    import docker.errors
    import httpx
    import requests
    from botocore.exceptions import ClientError
    from prefect.exceptions import PrefectHTTPStatusError
    from s3fs.errors import translate_boto_error

    response = requests.Response()
    response.status_code, response.reason, response._content = status, "x", b"x"
    asked = httpx.Request("GET", "http://x")
    status_error = httpx.HTTPStatusError("x", request=asked, response=httpx.Response(status, request=asked))
    told: Any = {"Error": {"Code": str(status), "Message": "x"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    info: Any = SimpleNamespace(real_url="http://x")
    return {
        "engine: docker": docker.errors.APIError("x", response=response),
        "engine: what docker makes of it": caught(
            lambda: docker.errors.create_api_error_from_http_exception(requests.HTTPError("x", response=response))
        ),
        "network: requests": requests.HTTPError("x", response=response),
        "network: urllib": urllib.error.HTTPError("http://x", status, "x", info, None),
        "prefect: httpx": status_error,
        "prefect: Prefect": PrefectHTTPStatusError.from_httpx_error(status_error),
        "store: botocore": ClientError(told, "GetObject"),
        "store: s3fs": translate_boto_error(ClientError(told, "GetObject")),
        "store: aiohttp": aiohttp.ClientResponseError(info, (), status=status, message="x"),
    }


def caught(call: Callable[[], Any]) -> Exception:
    """The error that a call raises."""
    with pytest.raises(Exception) as found:  # noqa: PT011
        call()
    return found.value


@pytest.mark.parametrize("status", STATUS)
def test_an_answer_is_blamed_on_the_server_that_gave_it(status: int) -> None:
    for name, error in answers(status).items():
        server = name.partition(":")[0]
        expected = STATUS[status] or server
        expected = "missing" if (server, status) == ("store", 404) else expected
        assert cause_of(error).kind == expected, name
        around = BackendError("x")
        around.__cause__ = error
        assert cause_of(around).kind == expected, f"around {name}"


ERRNO = {
    "disk full": {"ENOSPC", "EDQUOT", "EFBIG"},
    "refused": {"EACCES", "EPERM", "EROFS"},
    "missing": {"ENOENT", "ENOTDIR"},
    "store": {"EIO", "EREMOTEIO", "EBUSY", "ESTALE", "ENOTCONN", "ENOLCK"},
    "user input": {"EINVAL", "ENAMETOOLONG", "ENOSYS", "EMSGSIZE", "EADDRINUSE"},
    "network": {"ETIMEDOUT", "ECONNRESET", "ECONNREFUSED", "ECONNABORTED", "EPIPE", "ESHUTDOWN", "ENETRESET"}
    | {"ENETDOWN", "ENETUNREACH", "EHOSTDOWN", "EHOSTUNREACH"},
    "limits": {"EMFILE", "ENFILE", "EAGAIN"},
    "memory": {"ENOMEM"},
}


def test_every_number_of_an_error_of_the_system() -> None:
    expected = {name: kind for kind, names in ERRNO.items() for name in names}
    assert set(expected) <= set(errno.errorcode.values())
    found = {name: cause_of(OSError(number, "x")).kind for number, name in errno.errorcode.items()}
    assert found == {name: expected.get(name, "bug") for name in found}


def test_a_full_disk_of_the_engine_is_told_as_one() -> None:
    import docker.errors
    import requests

    response = requests.Response()
    response.status_code = 500
    error = docker.errors.APIError("x", response=response, explanation="write /var/lib/docker: no space left on device")
    assert cause_of(error).kind == "disk full"


class _Broken(BaseHTTPRequestHandler):
    """A server that answers 500 to everything."""

    def do_GET(self) -> None:
        payload = b'{"message": "something is wrong"}'
        self.send_response(500)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of such a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Broken)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_a_500_of_a_real_engine_is_waited_for_as_one_of_the_engine() -> None:
    import docker

    with serving() as port:
        client = docker.DockerClient(base_url=f"tcp://127.0.0.1:{port}", version="1.41")
        error = caught(client.containers.list)
        assert "AWS" not in explain(error)
        assert explain(error).endswith(CAUSES["engine"].remedy)

        def ask() -> None:
            with engine_errors("containers"):
                client.containers.list()

        assert waiting_for(caught(ask), 60).startswith("for the Docker engine (containers: something is wrong)")
        client.close()


def clients(url: str) -> dict[str, Callable[[], Any]]:
    """A request of each library."""
    import httpx
    import requests
    import s3fs

    def s3() -> None:
        options = {"retries": {"max_attempts": 1}, "connect_timeout": 5, "read_timeout": 5}
        s3fs.S3FileSystem(key="x", secret="x", endpoint_url=url, config_kwargs=options, skip_instance_cache=True).ls(
            "bucket"
        )

    return {
        "requests": lambda: requests.get(url, timeout=5),
        "urllib": lambda: urllib.request.urlopen(url, timeout=5),
        "httpx": lambda: httpx.get(url, timeout=5),
        "s3": s3,
    }


@pytest.mark.parametrize("library", clients(""))
def test_a_certificate_that_nobody_trusts_does_not_pass(library: str, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path))
    with serving(context) as port:
        error = caught(clients(f"https://127.0.0.1:{port}")[library])
    assert cause_of(error).kind == "tls", repr(error)


@pytest.mark.parametrize(
    ("library", "kind"), [("requests", "network"), ("urllib", "network"), ("httpx", "prefect"), ("s3", "store")]
)
def test_a_server_that_is_not_there(library: str, kind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        error = caught(clients(f"http://127.0.0.1:{taken.getsockname()[1]}")[library])
    assert cause_of(error).kind == kind, repr(error)


def test_a_name_that_does_not_resolve() -> None:
    wrapped = urllib.error.URLError(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    assert cause_of(wrapped).kind == "dns"
