"""The page of `mlebench check`: what a person looks at before a competition is trusted."""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from common.cleaning import clean
from grading.competition_checks.features import MIN_FEATURE_SKILL, MIN_METADATA_SKILL
from grading.competition_checks.measured import Measured
from grading.competition_checks.public_files import PublicFile, files_by_id, test_files, training_files
from grading.competition_checks.subject import Skipped
from grading.page.check_charts import bar_chart, distribution, score_chart
from grading.page.render import environment, style_and_script

if TYPE_CHECKING:
    import pandas as pd

    from grading.competition_checks.run import Result
    from grading.competition_checks.task_tables import TaskTables

_ROWS, _COLUMNS, _CHARACTERS, _DIGITS = 4, 7, 60, 10
_IMAGES, _PIXELS = 8, 136
_MAX_BARS = 8
_NAMES = 280.0  # width of their names at most
_VERDICTS = ("failed", "noted", "skipped", "ok")  # the first thing to read first


@dataclass(frozen=True)
class Target:
    """What is predicted: its name, its distribution in both parts, and the number of their rows."""

    name: str
    chart: Markup | None
    train: int
    test: int


@dataclass(frozen=True)
class Example:
    """An image, with its name and its answer."""

    name: str
    answer: str
    address: Markup
    """The picture, small, as a `data:` address."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, shortened."""

    title: str
    header: list[str]
    rows: list[list[str]]


def render_check(measured: Measured, results: Sequence[Result], generated_at: datetime | None = None) -> str:
    """The page as one HTML document, which makes no network requests.

    Args:
        measured: the prepared competition.
        results: what its checks and gates said.
        generated_at: now by default.
    """
    subject, facts = measured.subject, measured.subject.competition.facts
    figures = {result.check: result.figures for result in results}
    tables = _tables(measured)
    return (
        environment()
        .get_template("check.html")
        .render(
            title=f"Check of {clean(facts.name)}",
            generated=(generated_at or datetime.now(UTC)).astimezone(UTC),
            **style_and_script("check.css"),
            id=facts.id,
            edition=subject.edition,
            metric=clean(facts.metric.name),
            direction=facts.metric.direction,
            counts={verdict: sum(result.verdict == verdict for result in results) for verdict in _VERDICTS},
            results=[(r.check, clean(r.about), r.verdict, list(map(clean, r.lines))) for r in _worst_first(results)],
            scores=_scores(measured, figures),
            noise=figures.get("noise", {}).get("standard error"),
            target=None if tables is None else _target(tables),
            skills=_skills(figures),
            tables=[] if tables is None else _examples(tables),
            images=[] if tables is None else _images(measured, tables),
        )
    )


def _worst_first(results: Sequence[Result]) -> list[Result]:
    return sorted(results, key=lambda result: _VERDICTS.index(result.verdict))


def _tables(measured: Measured) -> TaskTables | None:
    try:
        return measured.tables
    except (Skipped, OSError, ValueError):  # checks say what is wrong
        return None


def _scores(measured: Measured, figures: dict[str, dict[str, float]]) -> Markup | None:
    names = {"right": "right answers", "sample": "sample"}
    scores = {**figures.get("scale", {}), **figures.get("chance", {}), **figures.get("baseline", {})}
    scores = {names.get(name, name): score for name, score in scores.items() if score == score}
    error = figures.get("noise", {}).get("standard error")
    return score_chart(scores, measured.thresholds, error) if scores else None


def _target(tables: TaskTables) -> Target:
    test = tables.test_target.astype(str).tolist()
    train = [] if tables.train is None else tables.train[tables.target].astype(str).tolist()
    name = clean(str(tables.target or tables.answers.columns[0]))
    return Target(name, distribution(train, test), len(train), len(test))


def _skills(figures: dict[str, dict[str, float]]) -> Markup | None:
    found = {**figures.get("features", {}), **figures.get("metadata", {})}
    limits = {
        clean(name): limit
        for gate, limit in (("features", MIN_FEATURE_SKILL), ("metadata", MIN_METADATA_SKILL))
        for name in figures.get(gate, {})
    }
    best = {
        clean(name): [max(value, 0.0)] for name, value in sorted(found.items(), key=lambda item: -item[1])[:_MAX_BARS]
    }
    left = min(20 + 7.0 * max(map(len, best), default=0), _NAMES)
    return bar_chart(best, "columns alone", left=left, limits=limits) if best else None


def _examples(tables: TaskTables) -> list[Rows]:
    found = []
    if tables.train is not None:
        found.append(_rows("Training rows", tables.train.head(_ROWS), str(tables.target)))
    test = tables.test_target.to_frame(str(tables.target or tables.answers.columns[0])).head(_ROWS)
    if tables.test is not None:
        test = test.join(tables.test[tables.features])
    found.append(_rows("Test rows, with their answers", test.reset_index(), str(test.columns[0])))
    return found


def _rows(title: str, table: pd.DataFrame, target: str) -> Rows:
    """Some columns of a table, among them its first one and the target."""
    names = list(dict.fromkeys([table.columns[0], *([target] if target in table else []), *table.columns]))[:_COLUMNS]
    cells = [[_cell(value) for value in row] for row in table[names].itertuples(index=False)]
    return Rows(title, [clean(str(name)) for name in names], cells)


def _cell(value: Any) -> str:
    text = "" if value != value else clean(str(value))
    with contextlib.suppress(ValueError):
        text = text if len(text) <= _DIGITS else f"{float(text):.6g}"
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"


def _images(measured: Measured, tables: TaskTables) -> list[tuple[str, list[Example]]]:
    """Some images of each part."""
    own = test_files(measured.files, tables.answers.index)
    answers = tables.test_target
    parts = {"Test images": [(name, answers[name], file) for name, file in own.items()]}
    if tables.train is not None and own:
        keys = tables.train.iloc[:, 0]
        target = dict(zip(keys, tables.train[tables.target], strict=True))
        found = files_by_id(training_files(measured.files, own), list(dict.fromkeys(keys)))
        parts = {"Training images": [(name, target[name], file) for name, file in found.items()], **parts}
    shown = []
    for title, files in parts.items():
        examples = [
            Example(_cell(name), _cell(answer), address)
            for name, answer, file in files[: 2 * _IMAGES]
            if (address := _picture(file)) is not None
        ]
        if examples:
            shown.append((title, examples[:_IMAGES]))
    return shown


def _picture(file: PublicFile) -> Markup | None:
    """A small picture as a `data:` address; None if it is none, or one that cannot be read."""
    if file.shape() is None:
        return None
    from PIL import Image

    try:
        with Image.open(io.BytesIO(file.read())) as image:
            image.draft("RGB", (_PIXELS, _PIXELS))
            small = image.convert("RGB")
    except (OSError, ValueError):
        return None
    if max(small.size) > _PIXELS:
        small.thumbnail((_PIXELS, _PIXELS))
    small.save(content := io.BytesIO(), "PNG")
    return Markup("data:image/png;base64,{}").format(base64.b64encode(content.getvalue()).decode())
