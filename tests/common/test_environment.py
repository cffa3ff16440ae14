"""Variables of the environment are rewritten so that all libraries understand them."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import requests
from websockets.proxy import parse_proxy

from common.environment import settle
from common.errors import UsageError, UserError

PROXY = "http://proxy:3128"


def settled(**variables: str) -> dict[str, str]:
    environment = dict(variables)
    settle(environment)
    once = dict(environment)
    settle(environment)
    assert environment == once, "twice is as once"
    return environment


def test_values_lose_what_secrets_and_env_files_have_around_them() -> None:
    given = {
        "MLEBENCH_STORE": "s3://bucket\n",
        "AWS_SECRET_ACCESS_KEY": ' "abc"\r\n',
        "KAGGLE_KEY": "'k'",
        "HOME": " x ",
    }
    given |= {"PREFECT_API_AUTH_STRING": "", "MLEBENCH_RAW_DIR": " ", "AWS_ENDPOINT_URL": '""'}
    expected = {"MLEBENCH_STORE": "s3://bucket", "AWS_SECRET_ACCESS_KEY": "abc", "KAGGLE_KEY": "k", "HOME": " x "}
    assert settled(**given) == expected


@pytest.mark.parametrize("empty", ["", " ", "''\n"])
def test_the_store_must_not_be_empty(empty: str) -> None:
    with pytest.raises(UsageError, match="MLEBENCH_STORE is empty; name a directory"):
        settled(MLEBENCH_STORE=empty)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (PROXY, PROXY),
        ("proxy:3128", PROXY),
        ("http://proxy:3128/", PROXY),
        (" 'http://proxy:3128'\n", PROXY),
        ("http://me:s%23cret@proxy", "http://me:s%23cret@proxy"),
        ("http://me@proxy", "http://me:@proxy"),
        ("http://me:p@ss@proxy:1", "http://me:p%40ss@proxy:1"),
        ("https://proxy:3128", "https://proxy:3128"),
        ("socks5h://[::1]:1080", "socks5h://[::1]:1080"),
        ("socks://127.0.0.1:1080/", "socks5://127.0.0.1:1080"),
    ],
)
def test_a_proxy_is_named_in_full_in_both_cases(name: str, given: str, expected: str) -> None:
    environment = settled(**{name: given})
    assert environment["HTTP_PROXY"] == environment["http_proxy"] == expected
    assert "HTTPS_PROXY" not in environment, "requests of the other kind have none"
    parse_proxy(expected)


def test_all_proxy_counts_for_the_kinds_that_are_not_named() -> None:
    environment = settled(ALL_PROXY="socks5://one:1", https_proxy="http://two:2")
    assert [environment[f"{kind}_proxy"] for kind in ("http", "https", "all")] == [
        "socks5://one:1", "http://two:2", "socks5://one:1",
    ]  # fmt: skip


def test_the_lower_case_precedes_and_empty_variables_name_none() -> None:
    assert settled(HTTP_PROXY="http://one", http_proxy="http://two")["HTTP_PROXY"] == "http://two"
    assert settled(HTTP_PROXY="", https_proxy=" ", NO_PROXY="") == {}
    assert settled(NO_PROXY="a, b") == {"NO_PROXY": "a, b"}, "it means nothing without a proxy"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("socks4://proxy:1080", "ALL_PROXY begins with socks4://, which does not work here; use one of http, https,"),
        ("ftp://proxy", "ALL_PROXY begins with ftp://"),
        ("http://", "ALL_PROXY is not the address of a proxy"),
        ("http://me:s#cret@proxy:3128", "ALL_PROXY is not the address of a proxy, .* password has %23 for #"),
        ("http://proxy:port", "ALL_PROXY is not the address of a proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(value: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        settled(ALL_PROXY=value)
    assert "cret" not in str(caught.value)


@pytest.fixture
def own_environment() -> Iterator[None]:
    """What a test changes in the environment ends with it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


DIRECT = ["http://127.0.0.1:4200", "http://localhost:8787", "http://[::1]:4200/api", "https://127.0.0.1"]


@pytest.mark.parametrize(
    ("no_proxy", "direct", "by_proxy"),
    [
        ("", [], ["http://example.org"]),
        ("*", ["http://example.org"], []),
        ("localhost, *", ["http://example.org"], []),
        (" example.org , other.org", ["http://example.org", "http://a.example.org"], ["http://example.com"]),
        ("example.org;other.org other.com", ["http://other.com", "http://other.org"], ["http://example.com"]),
        ("*.example.org", ["http://a.example.org"], ["http://example.com"]),
        (".example.org", ["http://a.example.org"], ["http://example.com"]),
        ("example.org:8080", ["http://example.org:8080"], ["http://example.com"]),
        ("10.0.0.0/8", ["http://10.1.2.3:9000"], ["http://11.1.2.3:9000"]),
        ("fe80::/10,::1/128,[fe80::2]", ["http://[fe80::2]"], ["http://example.org"]),
        ("fd07:b51a:cc66:f0::/64,/,a/b,999.0.0.0/99", [], ["http://example.org"]),
    ],
)
@pytest.mark.usefixtures("own_environment")
def test_our_own_servers_have_no_proxy_whatever_the_exceptions_are(
    no_proxy: str, direct: list[str], by_proxy: list[str]
) -> None:
    os.environ |= {
        "HTTP_PROXY": PROXY,
        "HTTPS_PROXY": PROXY,
        "NO_PROXY": no_proxy,
        "AWS_ENDPOINT_URL": "http://10.1.2.3:9000",
    }
    settle()
    for url, expected in [*((url, False) for url in [*DIRECT, *direct]), *((url, True) for url in by_proxy)]:
        assert _proxied_by_httpx(url) is expected, url
        assert bool(requests.utils.get_environ_proxies(url)) is expected, url
        bare = httpx.URL(url)
        host = f"{bare.host}:{bare.port}" if bare.port else bare.host
        assert bool(urllib.request.proxy_bypass(host)) is not expected, url  # urllib, websockets and botocore


def _proxied_by_httpx(url: str) -> bool:
    with httpx.Client() as client:
        return client._transport_for_url(httpx.URL(url)) is not client._transport


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_bundle_for_one_library_counts_for_all(name: str, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("-----BEGIN CERTIFICATE-----\n")
    environment = settled(**{name: f"{bundle}\n"})
    assert environment["SSL_CERT_FILE"] == environment["REQUESTS_CA_BUNDLE"] == str(bundle)
    other = tmp_path / "other.pem"
    other.write_text("-----BEGIN TRUSTED CERTIFICATE-----\n")
    both = settled(SSL_CERT_FILE=str(bundle), REQUESTS_CA_BUNDLE=str(other))
    assert (both["SSL_CERT_FILE"], both["REQUESTS_CA_BUNDLE"]) == (str(bundle), str(other))
    assert "SSL_CERT_FILE" not in settled(REQUESTS_CA_BUNDLE=str(tmp_path)), "a directory is for requests only"
    assert "SSL_CERT_FILE" not in settled(AWS_CA_BUNDLE=str(bundle)), "the one of a store"


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "PREFECT_API_SSL_CERT_FILE"])
@pytest.mark.parametrize("content", [None, b"", b"\x30\x82"])
def test_a_bundle_that_cannot_be_used_is_named(name: str, content: bytes | None, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    if content is not None:
        bundle.write_bytes(content)
    with pytest.raises(UserError, match=f"^{name}: .*ca.pem cannot be used .*unset it$"):
        settled(**{name: str(bundle)})
