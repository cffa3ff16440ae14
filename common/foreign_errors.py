"""The kind of an error that a library or the system raised, for the table in `common.causes`.

1. The class, by its name, says whose error it is: the libraries need not be installed or imported. The bases of a class
   count in their order, so an error of the Docker engine is not one of `requests`, from which it is derived.
2. The answer of a server, its code or HTTP status, says what kind of error it is, but not of which server.
3. `errno` says what kind an error of the system is.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from common.errors import Kind

_CLASSES: Mapping[str, Kind] = MappingProxyType(
    {
        # The store, through fsspec, s3fs, botocore and aiohttp.
        "botocore.exceptions.ClientError": "store",
        "botocore.exceptions.ConnectionError": "store",
        "botocore.exceptions.HTTPClientError": "store",
        "botocore.exceptions.IncompleteReadError": "store",
        "botocore.exceptions.ChecksumError": "store",
        "botocore.exceptions.FlexibleChecksumError": "store",
        "botocore.exceptions.InvalidProxiesConfigError": "user input",
        "botocore.parsers.ResponseParserError": "store",
        "botocore.exceptions.NoCredentialsError": "refused",
        "botocore.exceptions.PartialCredentialsError": "refused",
        "botocore.exceptions.CredentialRetrievalError": "refused",
        "botocore.exceptions.MetadataRetrievalError": "refused",
        "botocore.exceptions.TokenRetrievalError": "refused",
        "botocore.exceptions.SSOError": "refused",
        "botocore.exceptions.LoginError": "refused",
        "botocore.exceptions.NoAuthTokenError": "refused",
        "botocore.exceptions.ProfileNotFound": "user input",
        "botocore.exceptions.NoRegionError": "user input",
        "botocore.exceptions.InvalidRegionError": "user input",
        "botocore.exceptions.ConfigNotFound": "user input",
        "botocore.exceptions.ConfigParseError": "user input",
        "botocore.exceptions.InvalidConfigError": "user input",
        "botocore.exceptions.ParamValidationError": "user input",
        "aiohttp.client_exceptions.ClientConnectorDNSError": "dns",
        "aiohttp.client_exceptions.ClientConnectorCertificateError": "tls",
        "aiohttp.client_exceptions.ServerFingerprintMismatch": "tls",
        "aiohttp.client_exceptions.InvalidURL": "user input",
        "aiohttp.client_exceptions.NonHttpUrlClientError": "user input",
        "aiohttp.client_exceptions.ClientError": "store",
        "fsspec.exceptions.FSTimeoutError": "store",
        "competitions.preparing.archives.reading.ShortAnswer": "store",
        # Kaggle and other pages, through requests and urllib.
        "http.client.InvalidURL": "user input",
        "http.client.HTTPException": "network",
        "urllib3.exceptions.LocationValueError": "user input",
        "urllib3.exceptions.NameResolutionError": "dns",
        "urllib3.exceptions.HTTPError": "network",
        "urllib.error.URLError": "network",
        "requests.exceptions.InvalidURL": "user input",
        "requests.exceptions.MissingSchema": "user input",
        "requests.exceptions.InvalidSchema": "user input",
        "requests.exceptions.InvalidHeader": "user input",
        "requests.exceptions.URLRequired": "bug",
        "requests.exceptions.StreamConsumedError": "bug",
        "requests.exceptions.RequestException": "network",
        # The Prefect server, whose client is httpx.
        "httpx.UnsupportedProtocol": "user input",
        "httpx.InvalidURL": "user input",
        "httpx.LocalProtocolError": "bug",
        "httpx.HTTPError": "prefect",
        "httpcore.NetworkError": "prefect",
        "httpcore.TimeoutException": "prefect",
        "httpcore.RemoteProtocolError": "prefect",
        # Dask.
        "distributed.comm.core.CommClosedError": "scheduler",
        "distributed.core.RPCClosed": "scheduler",
        "distributed.client.FutureCancelledError": "scheduler",
        "distributed.client.FuturesCancelledError": "scheduler",
        "distributed.scheduler.NoValidWorkerError": "scheduler",
        "distributed.scheduler.NoWorkerError": "scheduler",
        "distributed.exceptions.WorkerStartTimeoutError": "scheduler",
        "distributed.scheduler.KilledWorker": "memory",
        # Docker.
        "docker.errors.APIError": "engine",
        "docker.errors.TLSParameterError": "user input",
        "docker.errors.InvalidConfigFile": "user input",
        "docker.errors.InvalidRepository": "user input",
        "docker.errors.ContextException": "user input",
        "docker.errors.ContextNotFound": "user input",
        "docker.errors.BuildError": "user input",
        "docker.errors.ContainerError": "user input",
        "docker.errors.InvalidArgument": "bug",
        "docker.errors.NullResource": "bug",
        "docker.errors.DeprecatedMethod": "bug",
        "docker.errors.DockerException": "engine",
        # Files.
        "pyarrow.lib.ArrowMemoryError": "memory",
        "builtins.MemoryError": "memory",
        **dict.fromkeys(("zipfile.BadZipFile", "gzip.BadGzipFile", "tarfile.TarError", "zlib.error"), "damaged data"),
        **dict.fromkeys(("_lzma.LZMAError", "py7zr.exceptions.ArchiveError", "builtins.EOFError"), "damaged data"),
        # The system.
        "ssl.SSLEOFError": "network",
        "ssl.SSLZeroReturnError": "network",
        "ssl.SSLSyscallError": "network",
        "ssl.SSLWantReadError": "network",
        "ssl.SSLWantWriteError": "network",
        "ssl.SSLError": "tls",
        "socket.gaierror": "dns",
        "socket.herror": "dns",
        "builtins.TimeoutError": "network",
        "builtins.ConnectionError": "network",
        "builtins.PermissionError": "refused",
        "builtins.FileNotFoundError": "missing",
    }
)

_SERVICES: frozenset[Kind] = frozenset(("store", "network", "prefect", "scheduler", "engine"))
"""Kinds for which an answer or a text may name a more exact one."""

_CODES: Mapping[str, Kind] = MappingProxyType(
    {
        # Error codes of S3 and compatible servers.
        **dict.fromkeys(("RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch"), "network"),
        **dict.fromkeys(("SlowDown", "ServiceUnavailable", "InternalError", "OperationAborted", "Busy"), "store"),
        **dict.fromkeys(("Throttling", "ThrottlingException", "TooManyRequests", "ServerBusy", "NotReady"), "store"),
        **dict.fromkeys(("QuotaExceeded", "XMinioStorageFull", "StorageFull"), "disk full"),
        **dict.fromkeys(("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"), "refused"),
        "AllAccessDisabled": "refused",
        "RequestTimeTooSkewed": "clock",
        **dict.fromkeys(("NoSuchBucket", "NoSuchKey", "NoSuchUpload"), "missing"),
        **dict.fromkeys(("InvalidBucketName", "InvalidArgument", "InvalidRequest", "NotImplemented"), "user input"),
    }
)

_PASSING_STATUSES = (408, 409, 425, 429)
"""HTTP statuses below 500 after which the same request may succeed."""
_NOT_IMPLEMENTED = 501

_NUMBERS: Mapping[int, Kind] = MappingProxyType(
    {
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "disk full"),
        **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "refused"),
        **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "missing"),
        # EBUSY, EREMOTEIO and EIO are also what s3fs makes of SlowDown, InternalError and codes that it does not know;
        # ENOTCONN and ENOLCK come from mounted file systems.
        **dict.fromkeys((errno.EIO, errno.EREMOTEIO, errno.EBUSY, errno.ESTALE, errno.ENOTCONN, errno.ENOLCK), "store"),
        **dict.fromkeys(
            (errno.EINVAL, errno.ENAMETOOLONG, errno.ENOSYS, errno.EMSGSIZE, errno.EADDRINUSE), "user input"
        ),
        **dict.fromkeys((errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED), "network"),
        **dict.fromkeys((errno.EPIPE, errno.ESHUTDOWN, errno.ENETRESET), "network"),
        **dict.fromkeys((errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH), "network"),
        **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.EAGAIN), "limits"),  # EAGAIN: no further process
        errno.ENOMEM: "memory",
    }
)

_UNTRUSTED = re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|WRONG_VERSION_NUMBER", re.IGNORECASE)
"""Texts of OpenSSL in the errors of libraries that wrap its own."""

_POOL = re.compile(r"Pool\(host='([^']+)'")
_REASON = re.compile(r"""Read timed out|Connection[^'"()]* timed out|\[Errno -?\d+\] [^'"()]+|Tunnel[^'"()]+""")


def network_reason(text: str) -> str:
    """The host and what happened, in the text of an error of urllib3 or `requests`; empty for another text.

    >>> network_reason("HTTPConnectionPool(host='a.org', port=80): Max retries exceeded with url: / (Caused by "
    ...     "NewConnectionError('<urllib3...>: Failed to establish a new connection: [Errno 111] Connection refused'))")
    'a.org: Connection refused'
    """
    host, reasons = _POOL.search(text), _REASON.findall(text)
    return f"{host[1]}: {reasons[-1].rpartition('] ')[2]}" if host and reasons else ""


def kind_of(error: BaseException) -> Kind | None:
    """The kind of an error that is not ours; None if it is not in the tables.

    >>> kind_of(OSError(errno.ENOSPC, "No space left on device"))
    'disk full'
    >>> kind_of(KeyError("x"))
    """
    kind = _of_class(error)
    if kind is None and isinstance(error, OSError):
        kind = _of_system(error)
    return _of_answer(error, kind) or kind if kind in _SERVICES else kind


def _of_class(error: BaseException) -> Kind | None:
    """The kind of the first class that the table names; None for errors of the system, whose number says more."""
    for base in type(error).__mro__:
        if base.__module__ == "builtins" and issubclass(base, OSError):
            return None
        if (kind := _CLASSES.get(_name(base))) is not None:
            return kind
    return None


def _of_system(error: OSError) -> Kind | None:
    """The kind of an error of the system: that of the server's answer in it, of its number, or of its class."""
    cause = error.__cause__
    if cause is not None and hasattr(cause, "response"):
        # s3fs raises errors of the system for answers of the server, whose codes are more exact.
        return kind_of(cause)
    if error.errno is not None and error.errno in _NUMBERS:
        return _NUMBERS[error.errno]
    return next((_CLASSES[_name(base)] for base in type(error).__mro__ if _name(base) in _CLASSES), None)


def _of_answer(error: BaseException, service: Kind | None) -> Kind | None:
    """The kind by the server's answer, or by how the connection to it failed; None if these say nothing more exact."""
    reason = getattr(error, "reason", None)  # of urllib
    if isinstance(reason, OSError):
        return kind_of(reason)
    code, status = code_and_status(error)
    if code in _CODES:
        return _CODES[code]
    text = str(error)
    if status == 507 or "no space left on device" in text.lower():
        return "disk full"
    if _UNTRUSTED.search(text):
        return "tls"
    if status in (401, 403, 407):
        return "refused"
    if status == 404 and service == "store":
        return "missing"
    refused = (400 <= status < 500 and status not in _PASSING_STATUSES) or status == _NOT_IMPLEMENTED
    return "user input" if refused else None


def code_and_status(error: BaseException) -> tuple[str, int]:
    """The server's own code, and the HTTP status, of its answer; empty and 0 without an answer."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        code = str(response.get("Error", {}).get("Code", ""))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode") or (int(code) if code.isdigit() else 0)
        return code, status
    # requests and httpx have it in the response, aiohttp in `status`, urllib in `code`.
    candidates = (getattr(response, "status_code", None), getattr(error, "status", None), getattr(error, "code", None))
    return "", next((candidate for candidate in candidates if isinstance(candidate, int)), 0)


def _name(class_: type) -> str:
    return f"{class_.__module__}.{class_.__name__}"
