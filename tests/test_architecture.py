"""The rules of the house: imports point one way, importing is cheap, nothing below tasks knows Prefect."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = {
    "competitions": {"grading"},
    "grading": {"competitions"},
    "storage": {"competitions", "grading"},
    "sandbox": {"competitions", "grading", "storage"},
    "tasks": {"competitions", "grading", "storage", "sandbox"},
    "flows": {"competitions", "grading", "storage", "sandbox", "tasks"},
    "deployments": {"competitions", "grading", "storage", "sandbox", "tasks", "flows"},
}
# `Competition.prepare` is a convenience that writes to a directory, which is the store's business.
EXCEPTIONS = {("competitions/competition.py", "storage.materialise")}


def imports(path: Path) -> set[str]:
    """Every module that a file imports, at whatever depth."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def modules(package: str) -> list[Path]:
    return sorted(p for p in (ROOT / package).rglob("*.py") if "sandbox/agents" not in p.as_posix())


@pytest.mark.parametrize("package", LAYERS)
def test_imports_point_one_way(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(package)
        for name in imports(path)
        if name.split(".")[0] in LAYERS.keys() - LAYERS[package] - {package}
        and (path.relative_to(ROOT).as_posix(), name) not in EXCEPTIONS
    ]
    assert not wrong


def test_competitions_use_only_metrics_and_validation_of_grading() -> None:
    allowed = ("grading.metrics", "grading.cells", "grading.checks", "grading.tables", "grading.errors")
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("competitions")
        for name in imports(path)
        if name.startswith("grading.") and not name.startswith(allowed)
    ]
    assert not wrong


@pytest.mark.parametrize("package", ["competitions", "grading", "storage", "sandbox"])
def test_nothing_below_tasks_knows_prefect(package: str) -> None:
    assert not [path for path in modules(package) if any(name.split(".")[0] == "prefect" for name in imports(path))]


@pytest.mark.parametrize(
    "statement",
    [
        "import competitions, competitions.registry, grading, storage, sandbox, tasks, flows",
        "from competitions import registry; registry.get('leaf-classification')",
        "from flows.cli import main; main(['--help'])",
        "from flows.cli import main; main(['run', '--help'])",
        "from flows.cli import main; main(['list'])",
    ],
)
def test_what_must_be_cheap_imports_nothing_heavy(statement: str) -> None:
    heavy = ("pandas", "numpy", "sklearn", "dask", "distributed", "prefect", "docker", "pyarrow", "scipy", "kaggle")
    code = f"import sys\n{statement}\nprint(*(m for m in {heavy!r} if m in sys.modules), file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert result.stderr.split() == []
