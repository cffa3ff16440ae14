"""The rules of the house: imports point one way, importing is cheap, nothing below tasks knows Prefect or settings."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What each room may import besides itself, as in CONTRIBUTING.md: `test_the_table_of_packages_says_the_same`.
ROOMS: dict[str, set[str]] = {
    "common": set(),
    "competitions": {"common"},
    "grading": {"common", "competitions"},
    "storage": {"common", "competitions"},
    "sandbox": {"common"},
    "tasks": {"common", "competitions", "grading", "storage", "sandbox"},
    "flows": {"common", "competitions", "grading", "storage", "sandbox", "tasks", "training"},
    "deployments": {"common", "competitions", "grading", "storage", "sandbox", "tasks", "flows"},
    "training": {"common", "competitions", "grading", "storage", "sandbox", "tasks"},
    "mlebench": {"common", "competitions", "grading", "storage", "sandbox", "tasks", "training"},
    "benchmarks": {"common", "competitions", "grading", "storage", "sandbox", "tasks", "flows", "deployments"},
}

# Within a room, what each folder may import besides itself; "." are the modules that lie directly in the room.
FOLDERS: dict[str, dict[str, set[str]]] = {
    "competitions": {
        "tables": set(),
        "preparing": {"errors", "editions", "tables"},
        "scoring": {"tables"},
        "variants": {"preparing"},
        ".": {"preparing", "scoring", "tables", "variants"},
        "proposals": {"preparing", "tables", "errors", "."},
        "catalog": {"preparing", "scoring", "tables", "errors", "editions"},
        "template": {"preparing", "scoring", "errors", "editions"},
    },
    "grading": {
        ".": set(),
        "statistics": {"."},
        "integrity": set(),
        "workers": {"."},
        "feedback": {".", "workers"},
        "competition_checks": {".", "statistics", "workers"},
        "page": {".", "statistics", "integrity", "competition_checks"},
    },
    "storage": {
        ".": set(),
        "sources": {"."},
        "datasets": {".", "sources"},
        "runs": {"."},
        "upkeep": {".", "sources", "datasets", "runs"},
    },
    "sandbox": {
        ".": set(),
        "world": {"."},
        "supervision": {".", "world"},
        "process": {".", "world", "supervision"},
        "gateway": {"."},
        "trajectory": set(),
        "validation": {"."},
        "services": {".", "gateway", "validation"},
        "host": {"."},
        "confinement": {".", "world", "supervision", "host"},
        "docker": {".", "world", "supervision", "host", "confinement"},
        "rootless": {".", "world", "supervision", "process", "host", "confinement", "docker"},
    },
    "tasks": {"wiring": set(), ".": {"wiring"}, "export": {"wiring", "."}},
}


@cache
def imports(path: Path) -> set[str]:
    """Every module of ours that a file imports, at whatever depth; of `from package import module` the module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules(room: str) -> list[Path]:
    return sorted(p for p in (ROOT / room).rglob("*.py") if "sandbox/agents" not in p.as_posix())


def folder_of(room: str, module: str) -> str:
    """The folder of `room` in which a module or a name in it lies: "." for modules directly in the room."""
    part = module.split(".")[1] if "." in module else "."
    if (room, part) == ("competitions", "errors") or (room, part) == ("competitions", "editions"):
        return part
    return part if (ROOT / room / part).is_dir() and part in FOLDERS[room] else "."


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_way(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in imports(path)
        if name.split(".")[0] in ROOMS.keys() - ROOMS[room] - {room}
    ]
    assert not wrong


def documented(heading: str) -> list[list[str]]:
    """Rows of the table in CONTRIBUTING.md whose last column has that heading, cell by cell."""
    lines = (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.endswith(f"| {heading} |")) + 2
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_table_of_packages_says_the_same() -> None:
    table = {folder.strip("`/"): re.findall(r"`(\w+)`", known) for folder, _, known in documented("imports")}
    assert table.pop("tests") == []
    assert {room: set(known) for room, known in table.items()} == ROOMS


def test_the_table_of_folders_says_the_same() -> None:
    table: dict[str, dict[str, set[str]]] = {}
    for folder, _, known in documented("imports from its package"):
        room, _, name = folder.replace(" (top)", "").strip("`/").partition("/")
        names = set(re.findall(r"`(\w+)`", known)) | ({"."} if known.startswith("top") else set())
        table.setdefault(room, {})[name or "."] = names
    assert table == FOLDERS


CIRCLES: list[set[str]] = []
"""Modules that import each other, directly or through others. None may come; those that are broken leave the list."""


def files_by_module() -> dict[str, Path]:
    paths = [path for room in ROOMS for path in modules(room)]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return dict(zip(names, paths, strict=True))


def imports_of(tree: ast.AST, known: Collection[str]) -> set[str]:
    """The modules among `known` that code imports, also within functions, but not only for the type checker."""
    imported: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= {name if name in known else node.module for name in names}
        imported |= imports_of(node, known)
    return imported & set(known)


def circles(graph: Mapping[str, Collection[str]]) -> list[set[str]]:
    """The strongly connected components of more than one node, sorted by their first node."""

    def reached(start: str, edges: Mapping[str, Collection[str]]) -> set[str]:
        seen, todo = {start}, [start]
        while todo:
            new = set(edges[todo.pop()]) - seen
            seen |= new
            todo += new
        return seen

    backwards = {name: {other for other in graph if name in graph[other]} for name in graph}
    components: list[set[str]] = []
    for name in sorted(graph):
        if not any(name in component for component in components):
            components.append(reached(name, graph) & reached(name, backwards))
    return [component for component in components if len(component) > 1]


def test_circles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": [], "e": ["a", "f"], "f": ["e"]}
    assert circles(graph) == [{"b", "c"}, {"e", "f"}]
    code = "import a\nif TYPE_CHECKING:\n    import b\ndef f():\n    from c import d\n    from c import x"
    assert imports_of(ast.parse(code), ["a", "b", "c", "c.d"]) == {"a", "c", "c.d"}


def test_no_modules_import_each_other() -> None:
    files = files_by_module()
    graph = {name: imports_of(ast.parse(path.read_text("utf-8")), files) - {name} for name, path in files.items()}
    assert circles(graph) == CIRCLES


@pytest.mark.parametrize("room", FOLDERS)
def test_folders_of_a_room_import_one_way(room: str) -> None:
    wrong = []
    for path in modules(room):
        own = path.relative_to(ROOT / room).parts
        folder = own[0] if len(own) > 1 else "."
        allowed = FOLDERS[room][folder] | {folder} | ({"errors", "editions"} if folder == "." else set())
        wrong += [
            f"{path.relative_to(ROOT)} imports {name}"
            for name in imports(path)
            if name.split(".")[0] == room and folder_of(room, name) not in allowed
        ]
    assert not wrong


def test_artifacts_are_made_in_one_module_which_escapes_what_others_said() -> None:
    makers = re.compile(r"prefect\.(artifacts|client\.schemas\.actions\.Artifact)|(create|update)_\w*artifact")
    wrong = {
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in modules(room)
        if makers.search(path.read_text("utf-8"))
    }
    assert wrong == {"tasks/wiring/artifacts.py"}


@pytest.mark.parametrize("room", ["common", "competitions", "grading", "storage", "sandbox"])
def test_nothing_below_tasks_knows_prefect_or_reads_settings(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in imports(path)
        if name.split(".")[0] == "prefect"
        or (name.startswith("common.settings") and path != ROOT / "common" / "settings.py")
    ]
    assert not wrong


@pytest.mark.parametrize(
    "statement",
    [
        "import common, competitions, competitions.registry, grading, storage, sandbox, tasks, flows",
        "from mlebench.registry import registry; registry.get_competition('leaf-classification')",
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


def test_metrics_and_graders_import_before_workers_are_forked() -> None:
    """Within a function, each worker would import it anew, for one submission. pandas and Arrow are always there."""
    catalog = (ROOT / "competitions" / "catalog").glob("*/grade.py")
    late = set()
    for path in [*(ROOT / "competitions" / "scoring").rglob("*.py"), *catalog]:
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                if isinstance(node, ast.Import | ast.ImportFrom):
                    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
                    late |= {f"{path.relative_to(ROOT)}: {name}" for name in names}
    assert not [each for each in late if each.split(": ")[1].split(".")[0] not in ("pandas", "pyarrow", "competitions")]


def test_commands_without_a_flow_do_not_wait_for_prefect() -> None:
    """Importing it takes longer than most of these commands."""
    steps = [f"tasks.{path.stem}" for path in (ROOT / "tasks").glob("[a-z]*.py") if path.stem != "steps"]
    needed = ", ".join([*sorted(steps), "flows.credentials", "flows.watching.outcome", "flows.commands.direct"])
    code = f"import sys, {needed}; sys.exit('prefect' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_no_pattern_of_re_ends_with_a_dollar() -> None:
    """`$` also matches before a newline at the end of a text: names are matched with `fullmatch`, ends with `\\Z`."""
    wrong = []
    for path in [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]:
        calls = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        for call in calls:
            if not (isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "re") or not call.args:
                continue
            texts = [each.value for each in ast.walk(call.args[0]) if isinstance(each, ast.Constant)]
            if any(isinstance(text, str) and re.search(r"(?<!\\)\$(?=\)|\||\Z)", text) for text in texts):
                wrong.append(f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call)}")
    assert not wrong


def test_nobody_writes_json_that_is_none() -> None:
    """By default, Python's writer writes `Infinity` and `NaN`, which only Python reads: see `common.plain_json`.

    Programs of agents' images are not ours to import from, and prepared files are as Python wrote the published ones.
    """
    exempt = ("common/plain_json.py", "sandbox/agents/", "competitions/catalog/", "competitions/preparing/")
    wrong = []
    for path in [path for room in set(ROOMS) - {"benchmarks"} for path in sorted((ROOT / room).rglob("*.py"))]:
        if path.relative_to(ROOT).as_posix().startswith(exempt):
            continue
        for call in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)):
            strict = any(each.arg == "allow_nan" and ast.unparse(each.value) == "False" for each in call.keywords)
            if ast.unparse(call.func) in ("json.dump", "json.dumps", "dumps", "dump") and not strict:
                wrong.append(f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call)}")
    assert not wrong
