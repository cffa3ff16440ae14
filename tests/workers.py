"""How tests are given to the workers of `pytest -n`: fast ones first, then the files that take longest.

    python -m tests.workers SUITE.xml

writes `tests/seconds.json` from the times in a report of `pytest --junitxml`. Files that it does not name count as
fast, so it has to be written again only when a slow file is new.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[1]
SECONDS = Path(__file__).parent / "seconds.json"
SHORT = 2.0
"""Seconds below which a file is not worth naming."""
FAST = 5.0
"""Seconds of a file up to which `--fast` includes it."""
NOT_FAST = (
    "tests/flows/",
    "tests/deployments/",
    "tests/tasks/",
    "tests/s3/",
    "tests/parity/",
    "tests/competitions/issues/",
)
"""Folders that `--fast` leaves out: they start Prefect or S3 servers and agents, or prepare all competitions."""
SERVED = ("tests/flows/", "tests/tasks/")
"""Folders whose tests share servers, which end with the last test of the folder. They come after other long files,
which have more tests for the same time."""
BY_VALUE = (
    "tests/deployments/test_up.py",
    "tests/deployments/test_compose.py",
    "tests/deployments/test_other_users.py",
    "tests/flows/",
    "tests/sandbox/",
    "tests/parity/",
    "tests/",
    "tests/tasks/",
    "tests/deployments/",
)
"""The order of tests marked slow, the most valuable first: `--until` leaves out the last."""
SPREAD = ("tests/parity/",)
"""Files whose tests share nothing, so that several workers may take them: all tests of a competition go to one."""
_COMPETITION = re.compile(r"\[(?P<id>[\w-]+?)(?:-v[12]-\w+)?\]$")


def unit(nodeid: str) -> str:
    """What is given to a worker as a whole: a file, or all tests of a competition in files that are spread.

    >>> unit("tests/parity/test_every_competition.py::test_every_competition[digits-v2-hostile]")
    'tests/parity/test_every_competition.py digits'
    >>> unit("tests/flows/test_cli.py::TestHelp::test_help[run]")
    'tests/flows/test_cli.py'
    """
    path = nodeid.split("::", 1)[0]
    found = _COMPETITION.search(nodeid) if path.startswith(SPREAD) else None
    return f"{path} {found['id']}" if found else path


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Of `--dist loadfile`: units in the order in which they were collected."""
    from xdist.scheduler import LoadFileScheduling

    class ByUnit(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

        def remove_node(self, node: Any) -> str | None:
            """Give the tests of a worker that has died to others, but not the one that it died of.

            They would die of it as well. Nor units that have ended: a worker that is given no test asks for no other.
            """
            units = self.assigned_work[node]
            died_of = next((each for tests in units.values() for each, ended in tests.items() if not ended), None)
            for name, tests in list(units.items()):
                if died_of in tests:
                    tests[died_of] = True
                if all(tests.values()):
                    del units[name]
            super().remove_node(node)
            return died_of

        def schedule(self) -> None:
            """Give a worker that replaces another one two units, as the first ones get: with one test, it waits."""
            replaces = self.collection is not None
            super().schedule()
            for node in self.nodes if replaces else ():
                self._reschedule(node)

    config.option.loadscopereorder = False  # it would put the files with the most tests first
    return ByUnit(config, log)


def in_their_order(items: list[pytest.Item]) -> None:
    """Put the many fast tests first, then long files, the longest first, then tests marked slow, by their value.

    Folders that share servers stay together, and come later. All workers have to collect in one order.
    """
    known = _known()

    def position(item: pytest.Item) -> tuple[int, float]:
        seconds = known.get(item.nodeid.split("::", 1)[0], 0.0)
        if item.get_closest_marker("slow"):
            matching = [path for path in BY_VALUE if item.nodeid.startswith(path)]
            return len(SERVED) + 1 + BY_VALUE.index(max(matching, key=len)), -seconds
        if is_fast(item):
            return -1, -seconds
        return next((number for number, path in enumerate(SERVED, 1) if item.nodeid.startswith(path)), 0), -seconds

    items.sort(key=position)


@cache
def _known() -> dict[str, float]:
    known: dict[str, float] = json.loads(SECONDS.read_text())
    return known


def is_fast(item: pytest.Item) -> bool:
    """Whether `--fast` includes a test: it needs no service, and neither its folder nor its file takes long."""
    return is_fast_path(item.nodeid.split("::", 1)[0]) and not any(
        item.get_closest_marker(name) for name in ("service", "slow")
    )


def is_fast_path(path: str) -> bool:
    """Whether `--fast` includes tests of a file, or of a folder, which ends with a slash."""
    return _known().get(path, 0.0) <= FAST and not path.startswith(NOT_FAST)


def seconds_of(report: Path) -> dict[str, float]:
    """The time of each file in a report, slowest first, without those that are short."""
    total: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        while parts and not (path := ROOT.joinpath(*parts).with_suffix(".py")).is_file():
            parts.pop()  # the name of a class
        if parts:
            total[path.relative_to(ROOT).as_posix()] += float(case.get("time", 0))
    slowest = sorted(total.items(), key=lambda each: -each[1])
    return {path: round(seconds, 1) for path, seconds in slowest if seconds >= SHORT}


if __name__ == "__main__":
    SECONDS.write_text(json.dumps(seconds_of(Path(sys.argv[1])), indent=0) + "\n")
