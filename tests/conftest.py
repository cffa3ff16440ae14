"""What tests share: services that may be missing, the three small downloads, a Prefect server of the session's own."""

from __future__ import annotations

import atexit
import faulthandler
import gc
import math
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import certifi
import hypothesis
import pytest


def _own_home() -> None:
    """Nothing of the user's settings reaches a test, and no test leaves anything in the user's home.

    Done while this module is imported: Prefect reads its settings when it is imported, which test modules do.
    """
    for name in [name for name in os.environ if name.startswith(("MLEBENCH_", "PREFECT_", "KAGGLE_", "AWS_"))]:
        if name not in ("MLEBENCH_REQUIRE_SERVICES", "MLEBENCH_WITHOUT"):
            del os.environ[name]
    home = tempfile.mkdtemp(prefix="mlebench-tests-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ["PREFECT_HOME"] = f"{home}/prefect"
    os.environ["MLEBENCH_SCRATCH"] = f"{home}/scratch"
    # A host of its own, with a slot for every agent: tests do not wait for the slots of others on this machine.
    os.environ["MLEBENCH_HOST_NAME"] = Path(home).name
    atexit.register(lambda: shutil.rmtree(host_folder(Path(home).name), ignore_errors=True))
    # Processes that tests start keep the bytecode of the project: to compile it anew takes each of them half a second.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["DO_NOT_TRACK"] = "1"
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
    # The first server in a home of Prefect takes half a second to register all types of blocks: most here are that.
    os.environ["PREFECT_SERVER_REGISTER_BLOCKS_ON_START"] = "false"
    # A command makes some ten clients of Prefect. Each asks for a token that our servers do not have, and for their
    # version, and reads certificates, though no server here has TLS: 20 ms with the usual 150, 1 ms with one.
    # Clients of S3 read them, too.
    os.environ["PREFECT_CLIENT_CSRF_SUPPORT_ENABLED"] = "false"
    os.environ["PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED"] = "false"
    certificate, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    Path(home, "ca.pem").write_text(f"{certificate}{end}\n")
    os.environ["PREFECT_API_SSL_CERT_FILE"] = os.environ["AWS_CA_BUNDLE"] = f"{home}/ca.pem"
    # A busy machine takes longer than Prefect's 20 seconds to start its own server.
    os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "300"


def _heed_interrupts() -> None:
    """Shells start background jobs with Ctrl-C ignored, and so would the commands that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_own_home()
_heed_interrupts()
atexit.register(gc.freeze)  # at the end, there is no use in looking for garbage
# The same examples in every session, and as much time for each as a busy machine needs.
hypothesis.settings.register_profile("mlebench", deadline=None, derandomize=True)
hypothesis.settings.load_profile("mlebench")

from common.settings import get_settings  # noqa: E402
from common.starting import COLLECTIONS  # noqa: E402
from competitions import registry  # noqa: E402
from competitions.competition import Competition  # noqa: E402
from sandbox.host.folder import host_folder  # noqa: E402
from tests import services, workers  # noqa: E402
from tests.bundles import bundle  # noqa: E402
from tests.prepared import PreparedCompetitions  # noqa: E402
from tests.stores import Store  # noqa: E402

pytest_plugins = [
    "tests.kaggle_server.fixtures",
    "tests.s3.fixtures",
    "tests.disks",
    "tests.prefect_home",
    "tests.storage.runs.recorded",
]

NO_TIME = "there was no time left (--until)"
HANGS_SECONDS = 120.0
"""Time that a test has to end after its timeout, which is an error in the main thread: others may wait forever."""
STDERR = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `make test-fast`, and of machines with little time."""
    parser.addoption("--fast", action="store_true", help="leave out tests with services, and files that take long")
    until = "skip what has not begun at this Unix time"
    parser.addoption("--until", type=float, default=math.inf, metavar="SECONDS", help=until)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without the tests that take long, do not even import them: that takes longer than many of the others."""
    if not config.getoption("fast"):
        return None
    name = collection_path.relative_to(workers.ROOT).as_posix() + ("/" if collection_path.is_dir() else "")
    return None if workers.is_fast_path(name) else True


@pytest.hookimpl(trylast=True)  # conftests of folders mark tests that need a service
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers begin with the tests that take longest; without workers, tests run in their usual order."""
    if config.getoption("fast"):
        config.hook.pytest_deselected(items=[item for item in items if not workers.is_fast(item)])
        items[:] = [item for item in items if workers.is_fast(item)]
    if hasattr(config, "workerinput"):
        workers.in_their_order(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is imported and collected: it stays, and is so much that it takes a second.

    Tests import much more, so that garbage is looked for as seldom as in our other processes.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTIONS)
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Units of our own for `--dist loadfile`."""
    return workers.scheduler(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error, which the output of tests does not reach."""
    config.stash[STDERR] = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process, with what its threads do, if a test that is out of time does not end: others have to run.

    pytest's own `faulthandler_timeout` would be that of the longest test for all.
    """
    marker = item.get_closest_marker("timeout")
    seconds = marker.args[0] if marker else float(item.config.getoption("timeout") or 0)
    if not seconds or item.config.getoption("usepdb"):
        return (yield)
    faulthandler.dump_traceback_later(seconds + HANGS_SECONDS, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """Name what fails at once, not only in the end, which a session may not reach."""
    if not report.failed:
        return None
    category, letter = ("failed", "F") if report.when == "call" else ("error", "E")
    return category, f"\n{letter} {report.nodeid}\n", category.upper()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the tests that failed in the last session and passed in this one, and those that there was no time for."""
    if config.getoption("lf", False):
        flaky = sorted(report.nodeid for report in terminalreporter.stats.get("passed", ()))
        title = f"FLAKY (unless the code has changed): {len(flaky)} tests failed before and passed now"
        terminalreporter.write_line(title, yellow=True, bold=True)
        for name in flaky:
            terminalreporter.write_line(f"  {name}", yellow=True)
    skipped = terminalreporter.stats.get("skipped", ())
    late = Counter(report.nodeid.split("::", 1)[0] for report in skipped if NO_TIME in str(report.longrepr))
    if late:
        terminalreporter.write_line(f"NOT RUN, {NO_TIME}: {late.total()} tests", yellow=True, bold=True)
        for path, count in sorted(late.items()):
            terminalreporter.write_line(f"  {path}: {count}", yellow=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests whose service is missing, or fail them where services are required."""
    if time.time() > item.config.getoption("until"):
        pytest.skip(NO_TIME)
    for marker in item.iter_markers("service"):
        reason = services.SERVICES[marker.args[0]]()
        if reason and marker.args[0] in services.WITHOUT:
            pytest.skip(reason)
        services.skip_without(reason)


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    """Competition folders and splits that a test adds are not known to the next one."""
    yield
    registry.extend(())
    registry.define({})


@pytest.fixture(autouse=True)
def _own_settings() -> Iterator[None]:
    """What a command that runs in this process sets for those that it starts, such as --agents, ends with its test."""

    def ours() -> dict[str, str]:
        prefixes = ("MLEBENCH_", "PREFECT_", "PYTHONSAFEPATH")
        return {name: value for name, value in os.environ.items() if name.startswith(prefixes)}

    before = ours()
    yield
    if (after := ours()) != before:
        for name in after:
            del os.environ[name]
        os.environ.update(before)
        get_settings.cache_clear()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store in a local directory."""
    return Store(str(tmp_path / "store"))


@pytest.fixture
def digits() -> Competition:
    return registry.get("digits")


@pytest.fixture
def digits_zip(tmp_path: Path) -> Path:
    """The download of the competition digits."""
    path = tmp_path / "digits.zip"
    path.write_bytes(bundle("digits"))
    return path


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedCompetitions:
    """Every competition prepared from its miniature: by id, on demand, once for all workers of the session."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prepared-competitions"
    root.mkdir(exist_ok=True)
    return PreparedCompetitions(root)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Have a test fail that ends with `KeyboardInterrupt`, as stopped runs do, instead of ending the session."""
    try:
        return (yield)
    except KeyboardInterrupt as error:
        if "PYTEST_XDIST_WORKER" in os.environ:  # Ctrl-C reaches the process that gives out the tests
            raise RuntimeError("what was tested was interrupted") from error
        raise
