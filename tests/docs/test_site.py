"""The documentation as a site: every page and public module is on it, looks as in the repository, and links lead on."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.docs import site
from tests.docs.blocks import ROOT
from tests.docs.docstrings import fenced

pytestmark = pytest.mark.slow

ELEMENTS = "table|tr|th|td|pre|code|ul|ol|li|h[1-6]|img|em|strong"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory `build` of a site."""
    root = tmp_path_factory.mktemp("site")
    assert site.main(root) == 0
    return root / "build"


def article(page: Path) -> str:
    """The content of a page, without navigation."""
    found = re.search(r"<article.*?</article>", page.read_text("utf-8"), re.DOTALL)
    assert found
    return found[0]


def test_every_page_is_in_the_navigation(tmp_path: Path) -> None:
    def pages(items: list[dict[str, Any]]) -> list[str]:
        values = [value for item in items for value in item.values()]
        return [name for each in values for name in (pages(each) if isinstance(each, list) else [each])]

    site.copy_pages(tmp_path / "docs")
    found = pages(tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"])
    copied = {path.relative_to(tmp_path / "docs").as_posix() for path in (tmp_path / "docs").rglob("*.md")}
    assert Counter(found) == Counter(copied | {"figures.md"})


def test_the_notebook_is_stored_without_outputs() -> None:
    """They would be images in the history, and could be out of date."""
    notebook = json.loads((ROOT / site.NOTEBOOK).read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


@pytest.mark.service("docs")
class TestBuilt:
    def test_pages_have_the_same_elements_as_in_the_repository(self, built: Path) -> None:
        """Dialects of Markdown differ in lists, tables and code blocks."""
        parser = MarkdownIt("commonmark").enable("table")
        for source in (built / "docs").glob("*.md"):
            shown = article(built / "site" / source.with_suffix("").name.replace("index", "") / "index.html")
            expected = parser.render(source.read_text("utf-8"))
            tags = rf"<({ELEMENTS})\b"
            assert Counter(re.findall(tags, shown)) == Counter(re.findall(tags, expected)), source.name

    def test_nothing_is_fetched_from_elsewhere(self, built: Path) -> None:
        pages = [path.read_text("utf-8") for path in (built / "site").rglob("*.html")]
        fetched = r"<(?:link|script|img|iframe)[^>]*(?:href|src)=\"?(?:https?:)?//[^>]*>"
        assert [found for page in pages for found in re.findall(fetched, page)] == []
        styles = [path.read_text("utf-8") for path in (built / "site").rglob("*.css")]
        assert [found for style in styles for found in re.findall(r"url\(\"?(?:https?:)?//[^)]*", style)] == []

    def test_the_reference_has_every_public_module(self, built: Path) -> None:
        for page, modules in site.reference().items():
            shown = article(built / "site" / "api" / page.removesuffix(".md") / "index.html")
            for name in modules:
                assert f'id="{name}"' in shown, name
                assert f'id="{name}.' in shown, f"{name} has no documented function or class"
            assert ("Root of everything" in shown) == ("common.settings" in modules), "descriptions of fields"
            assert "<blockquote>" not in shown, "an example that is shown as a quotation"

    def test_the_notebook_draws_three_figures(self, built: Path) -> None:
        page = (built / "docs" / "figures.md").read_text("utf-8")
        figures = re.findall(r"!\[Figure\]\((figures_files/\w+\.svg)\)", page)
        assert len(figures) == 3
        for text in (page, *((built / "site" / figure).read_text("utf-8") for figure in figures)):
            assert str(ROOT) not in text
            assert str(Path.home()) not in text
            assert str(built.parent) not in text


@pytest.mark.service("docs")
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[a](concepts.md#nowhere)", "anchor does not exist"),
        ("[a](nowhere.md)", "page does not exist"),
        ("::: common.nowhere", "common.nowhere could not be found"),
    ],
)
def test_a_page_that_leads_nowhere_fails(
    written: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pages = tmp_path / "build" / "docs"
    pages.mkdir(parents=True)
    (pages / "concepts.md").write_text("# Concepts\n")
    (pages / "agents.md").write_text(f"# Agents\n\n{written}\n")
    assert site.build(tmp_path) != 0
    assert said in capfd.readouterr().out


def test_examples_in_docstrings_are_code_blocks() -> None:
    assert fenced("One.\n\n>>> 1\n1\n>>> 2\n2\n\nTwo.\n\n>>> 3") == (
        "One.\n\n```pycon\n>>> 1\n1\n>>> 2\n2\n```\n\nTwo.\n\n```pycon\n>>> 3\n```"
    )


def test_a_link_to_a_file_that_is_not_on_the_site_fails() -> None:
    with pytest.raises(KeyError, match="tests/picture"):
        site.relinked("![a](../tests/picture.png)", "docs", {"docs/picture.png": "picture.png"})
