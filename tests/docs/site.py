"""The documentation as a site: `make docs` writes it to build/site.

`python -m tests.docs.site` copies the pages to build/docs, with links that lead to other pages of the site, writes the
pages of the API reference that `docs/api.md` lists, executes `docs/figures.ipynb` on a store with made-up results, and
has Zensical build the site. A broken link or anchor is an error. Zensical and Jupyter have an environment of their own,
`.venv-docs`; DOCS names another place.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from posixpath import normpath
from subprocess import PIPE, STDOUT

from tests.docs.blocks import ROOT

HOME = Path(os.environ.get("DOCS", ROOT / ".venv-docs"))
NOTEBOOK = "docs/figures.ipynb"
FURTHER = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages from outside `docs`, and their names on the site."""
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
_MODULE = re.compile(r"^\| \[(?P<name>[\w.]+)\]\(\.\./(?P<path>[\w/]+\.py)\)", re.MULTILINE)


def main(root: Path = ROOT) -> int:
    """Build the site in `root`; returns the exit code."""
    shutil.rmtree(root / "build" / "docs", ignore_errors=True)
    shutil.rmtree(root / "build" / "site", ignore_errors=True)
    copy_pages(root / "build" / "docs")
    with tempfile.TemporaryDirectory() as store:
        make_up_results(store)
        execute_notebook(store, root / "build" / "docs")
    return build(root)


def missing() -> str | None:
    """Why the site cannot be built here; None if it can."""
    return None if (HOME / "bin" / "zensical").exists() else f"{HOME} does not exist: make docs"


def copy_pages(target: Path) -> None:
    """Write the sources of the site. Raises `KeyError` if a link leads to a file that is not on the site."""
    api = reference()
    places = {f"docs/{path.name}": path.name for path in (ROOT / "docs").iterdir()} | FURTHER
    places |= {NOTEBOOK: Path(NOTEBOOK).with_suffix(".md").name}
    anchors = {path: f"api/{page}#{name}" for page, modules in api.items() for name, path in modules.items()}
    target.mkdir(parents=True)
    for source, name in places.items():
        if source.endswith(".md"):
            text = (ROOT / source).read_text("utf-8")
            (target / name).write_text(relinked(text, Path(source).parent.as_posix(), places | anchors), "utf-8")
        elif source != NOTEBOOK:
            shutil.copy(ROOT / source, target)
    (target / "api").mkdir()
    for page, modules in api.items():
        title = page.removesuffix(".md").replace("-", " ").capitalize()
        blocks = "".join(f"\n::: {name}\n" for name in modules)
        (target / "api" / page).write_text(f"# {title}\n{blocks}", "utf-8")


def relinked(text: str, folder: str, places: dict[str, str]) -> str:
    """Text of a page in `folder` of the project, with links to the `places` of files on the site.

    >>> relinked("[a](../README.md#usage)", "docs", {"README.md": "overview.md"})
    '[a](overview.md#usage)'
    """

    def place(link: re.Match[str]) -> str:
        return places[normpath(f"{folder}/{link['path']}")] + (link["anchor"] or "")

    return _LINK.sub(place, text)


def reference() -> dict[str, dict[str, str]]:
    """Pages of the API reference by the headings of `docs/api.md`: the path of each module by its name."""
    parts = (ROOT / "docs" / "api.md").read_text("utf-8").split("\n## ")[1:]
    return {
        part.partition("\n")[0].lower().replace(" ", "-") + ".md": {
            module["name"]: module["path"] for module in _MODULE.finditer(part)
        }
        for part in parts
    }


def make_up_results(root: str) -> None:
    """Write a store with results of four agents: tables of runs, grades, snapshots and usage, and aggregates."""
    import pandas as pd

    from storage.store import Store
    from storage.tables import write_frame
    from tasks.report import write_aggregates
    from tests.grading.page.board import board

    store, results = Store(root), board(4, requests=2)
    tables = {"runs": results.runs, "grades": results.grades, "snapshots": results.snapshots, "usage": results.usage}
    for group in results.grades["run_group"].unique():
        for name, frame in tables.items():
            assert isinstance(frame, pd.DataFrame)
            write_frame(store, name, group, frame[frame["run_group"] == group])  # type: ignore[arg-type]
        write_aggregates(store, group, incomplete="fail")


def execute_notebook(store: str, target: Path) -> None:
    """Write the page of the notebook and its figures. Raises `CalledProcessError` if a cell fails."""
    convert: list[str | Path] = [
        HOME / "bin" / "jupyter-nbconvert",
        ROOT / NOTEBOOK,
        "--execute",
        "--to=markdown",
        "--log-level=WARN",
    ]
    environment = {**os.environ, "MLEBENCH_STORE": store, "PATH": f"{HOME / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([*convert, f"--output-dir={target}"], check=True, env=environment)
    page = target / Path(NOTEBOOK).with_suffix(".md").name
    page.write_text(re.sub(r"!\[\w+\](?=\(figures_files)", "![Figure]", page.read_text("utf-8")), "utf-8")


def build(root: Path) -> int:
    """Have Zensical write `root`/build/site, and print what it says; returns its exit code, not 0 for a broken link."""
    config = root / "zensical.toml"
    if root != ROOT:
        text = (ROOT / "zensical.toml").read_text("utf-8")
        text = text.replace('paths = ["."]', f'paths = ["{ROOT}"]').replace('"tests/', f'"{ROOT}/tests/')
        config.write_text(text, "utf-8")
    command: list[str | Path] = [HOME / "bin" / "zensical", "build", "--strict", "--clean", "--config-file", config]
    environment = {**os.environ, "PYTHONPATH": ""}
    # It colours single characters, also in files.
    result = subprocess.run(command, text=True, check=False, env=environment, stdout=PIPE, stderr=STDOUT)
    print(re.sub(r"\x1b\[[\d;]*m", "", result.stdout), flush=True)
    return result.returncode


if __name__ == "__main__":
    raise SystemExit(main())
