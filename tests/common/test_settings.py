"""Settings: from the environment and mlebench.toml; what is misspelled is named, with the nearest setting."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.errors import UserError
from common.settings import OTHER_VARIABLES, PREFIX, Settings, get_settings, unknown_variables

ROOT = Path(__file__).parents[2]
Toml = Callable[[str], None]


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture
def toml(tmp_path: Path) -> Toml:
    def write(text: str) -> None:
        (tmp_path / "mlebench.toml").write_text(text)

    return write


def test_the_environment_comes_before_the_file(toml: Toml, monkeypatch: pytest.MonkeyPatch) -> None:
    toml('store = "/of/the/file"\ndownloads = 7')
    monkeypatch.setenv("MLEBENCH_STORE", "/of/the/environment")
    assert (get_settings().store, get_settings().downloads) == ("/of/the/environment", 7)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_the_file_comes_from_any_editor(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "mlebench.toml").write_bytes("downloads = 7\r\n".encode(encoding))
    assert get_settings().downloads == 7


@pytest.mark.parametrize("name", ["competitions", "agent_dirs"])
@pytest.mark.parametrize("text", ["/one:/two", '["/one", "/two"]', ":/one::/two:"])
def test_directories_are_separated_as_in_path_or_a_json_list(
    name: str, text: str, toml: Toml, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [Path("/one"), Path("/two")]
    toml(f"{name} = {json.dumps(text)}")
    assert getattr(Settings(), name) == expected
    toml("")
    monkeypatch.setenv(f"MLEBENCH_{name.upper()}", text)
    assert getattr(Settings(), name) == expected


@pytest.mark.parametrize("name", ["competitions", "agent_dirs"])
def test_directories_are_a_list_in_toml(name: str, toml: Toml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    toml(f'{name} = ["/one", "~/two"]')
    assert getattr(Settings(), name) == [Path("/one"), Path("/home/me/two")]
    monkeypatch.setenv(f"MLEBENCH_{name.upper()}", "")
    assert getattr(Settings(), name) == [], "an empty variable names none"


def test_a_list_that_is_no_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", '["/one"')
    with pytest.raises(UserError, match=r"^setting MLEBENCH_AGENT_DIRS: [^\n]+$"):
        get_settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "store = \N{LEFT DOUBLE QUOTATION MARK}s3://x\N{RIGHT DOUBLE QUOTATION MARK}",
            r"mlebench\.toml: .*typographic",
        ),
        ("stroe = 's3://x'", r"mlebench\.toml: unknown key 'stroe'\. Did you mean store"),
        ("MLEBENCH_RAW_DIR = '/x'", r"mlebench\.toml: unknown key 'MLEBENCH_RAW_DIR'\. Did you mean raw_dir"),
        ("[provider.a]\nbase_url = 'http://x'", r"unknown key 'provider'\. Did you mean providers"),
        (
            "[providers.a]\nbase_url = 'http://x'\napi_kye = 'secret'",
            r"unknown setting providers\.a\.api_kye .*MLEBENCH_PROVIDERS__A__API_KYE.*Did you mean api_key",
        ),
        ("[prices.m]\ninput = 1\noutputs = 2", r"unknown setting prices\.m\.outputs .*Did you mean output"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_the_nearest(text: str, message: str, toml: Toml) -> None:
    toml(text)
    with pytest.raises(UserError, match=message) as caught:
        get_settings()
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_toml_is_named(toml: Toml) -> None:
    toml("store = ")
    with pytest.raises(UserError, match=r"^mlebench\.toml: [^\n]+$"):
        get_settings()


def test_a_variable_that_is_no_json_is_not_blamed_on_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_ALLOWED_HOSTS", "example.org")
    with pytest.raises(UserError, match=r"^environment: [^\n]*allowed_hosts[^\n]*JSON$"):
        get_settings()


def test_an_unknown_nested_variable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_PROVIDERS__A__BASE_URL", "http://x")
    monkeypatch.setenv("MLEBENCH_PROVIDERS__A__MODEL", "[]")
    with pytest.raises(UserError, match=r"MLEBENCH_PROVIDERS__A__MODEL.* Did you mean models"):
        get_settings()


def test_an_unknown_variable_is_a_warning_that_names_the_nearest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MLEBENCH_CACHE_LIMITS", "1")
    for name in OTHER_VARIABLES:
        monkeypatch.setenv(name, "x")
    with caplog.at_level(logging.WARNING, "mlebench.settings"):
        get_settings()
    (record,) = caplog.records
    assert "MLEBENCH_CACHE_LIMITS is not a setting" in record.getMessage()
    assert "MLEBENCH_CACHE_LIMIT" in record.getMessage().split("Did you mean")[1]


def test_a_misspelled_list_of_prices_is_not_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """All its models would be without a price, and so outside of a budget in dollars."""
    monkeypatch.setenv("MLEBENCH_PROVIDERS__A__BASE_URL", "http://x")
    monkeypatch.setenv("MLEBENCH_PROVIDERS__A__PRICE_LIST", "antropic")
    with pytest.raises(UserError, match=r"PROVIDERS__A__PRICE_LIST: .* 'antropic'\. Did you mean anthropic"):
        get_settings()
    monkeypatch.setenv("MLEBENCH_PROVIDERS__A__PRICE_LIST", "anthropic")
    assert get_settings().providers["a"].price_list == "anthropic"


def test_every_documented_variable_is_a_setting() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "deployments" / "compose.yaml"]
    named = {name for page in pages for name in re.findall(rf"\b{PREFIX}[A-Z0-9_]*[A-Z0-9]\b", page.read_text("utf-8"))}
    assert len(named) > 15
    assert unknown_variables(dict.fromkeys(named, "")) == {}


def test_parameters_of_competitions_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    path.write_text(json.dumps({"digits": {"test_size": 3}}))
    settings = Settings(params=path)
    assert (settings.params_of("digits"), settings.params_of("other")) == ({"test_size": 3}, {})
    assert Settings().params_of("digits") == {}
    path.write_text("[]")
    with pytest.raises(UserError, match="must hold"):
        settings.params_of("digits")
    path.unlink()
    with pytest.raises(UserError, match=r"params\.json cannot be read: No such file"):
        settings.params_of("digits")


@pytest.mark.parametrize("name", ["scratch", "raw_dir", "params"])
def test_a_tilde_is_the_home_directory_where_no_shell_replaces_it(
    name: str, toml: Toml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(f"{PREFIX}{name.upper()}", raising=False)
    toml(f'{name} = "~/here"')
    assert getattr(get_settings(), name) == tmp_path / "here"


def test_the_home_of_nobody_is_named(toml: Toml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLEBENCH_SCRATCH")
    toml('scratch = "~nobody-of-this-name/x"')
    with pytest.raises(UserError, match=r"MLEBENCH_SCRATCH.*nobody-of-this-name"):
        get_settings()


@pytest.mark.parametrize("empty", ["", " ", "\n", '""'])
def test_an_empty_value_is_unset_but_that_of_the_store(empty: str, toml: Toml, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"{PREFIX}{name.upper()}", raising=False)
    default = get_settings()
    for name in Settings.model_fields.keys() - {"store"}:
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", empty)
    get_settings.cache_clear()
    assert get_settings() == default
    monkeypatch.setenv(f"{PREFIX}STORE", empty)
    get_settings.cache_clear()
    with pytest.raises(UserError, match="MLEBENCH_STORE is empty"):
        get_settings()
    monkeypatch.delenv(f"{PREFIX}STORE")
    get_settings.cache_clear()
    toml("\n".join(f"{name} = {json.dumps(empty)}" for name in ("store", "scratch", "raw_dir", "patience")))
    assert get_settings() == default


@pytest.mark.parametrize("around", ["{}\n", "{}\r\n", " {}\t", '"{}"', "'{}'\n"])
def test_what_is_around_a_value_does_not_count(around: str, toml: Toml, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "store": "s3://bucket/x",
        "patience": "5",
        "cache_limit": "5GB",
        "raw_dir": "/raw",
        "llm_transcripts": "1",
    }
    values |= {"agent_dirs": "/one:/two", "s3_secret_access_key": "key", "providers__a__base_url": "http://x/v1"}
    for name, value in values.items():
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", value)
    expected = get_settings()
    for name, value in values.items():
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", around.format(value))
    get_settings.cache_clear()
    assert get_settings() == expected
    monkeypatch.delenv("MLEBENCH_STORE")
    get_settings.cache_clear()
    toml(f"store = {json.dumps(around.format(values['store']))}")
    assert get_settings() == expected


def test_a_user_without_a_home_directory_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.delenv("MLEBENCH_SCRATCH")
    with pytest.raises(UserError, match="set HOME, or MLEBENCH_STORE and MLEBENCH_SCRATCH"):
        get_settings()


def test_a_home_that_is_no_whole_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "home")
    monkeypatch.delenv("MLEBENCH_STORE", raising=False)
    assert Settings().store == (tmp_path / "home" / ".local" / "share" / "mlebench").as_uri()
