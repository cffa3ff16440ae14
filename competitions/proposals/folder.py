"""Write the folder of a proposed competition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from common.errors import UserError, one_line
from competitions.competition import Competition
from competitions.errors import BadCompetition
from competitions.facts import Category, Direction
from competitions.leaderboard import leaderboard_of
from competitions.preparing.declaration import Content
from competitions.proposals.about import About
from competitions.proposals.findings import mark
from competitions.proposals.grade_code import grade_code
from competitions.proposals.layout import Layout, quoted
from competitions.proposals.prepare_code import ANSWERS, MANY_TARGETS, prepare_code, unit_of_answers
from competitions.proposals.propose import Proposal
from competitions.proposals.table_code import SAMPLE
from competitions.proposals.vocabulary import foreign_words

if TYPE_CHECKING:
    from competitions.preparing.download import Download

_IMAGES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".dcm", ".dicom"}
_SOUNDS = {".wav", ".mp3", ".flac", ".ogg", ".aif", ".aiff"}
_SUFFIXES = 1000  # files whose suffixes tell the category
_SHORT_KEY = 100  # characters; in YAML, 1024 with escape sequences
_EXAMPLES = 2  # rows in the description's example
_CATEGORY_OF_IMAGES: dict[str, Category] = {
    "masks": "Image Segmentation",
    "boxes": "Object Detection",
    "number": "Image Regression",
    "several numbers": "Image Regression",
    "text": "Image (Other)",
}
_TEXT_CHARACTERS = 40  # mean length of a cell from which on a column is prose
_FACTS = """\
# Every field is documented in competitions/facts.py. `mlebench check` reports mistakes.
id: {id}
name: {name}
category: '{category}'{category_mark}
complexity: unknown
{ended}source: kaggle
{size}metric:
  name: {metric}
  direction: {direction}{direction_mark}
holdout: {holdout}
{resampling}leaderboard:
{leaderboard}
files:
  answers: {answers}
  sample_submission: public/{sample}
  gold_submission: {answers}
submission:
{submission}
{oddities}known_issues:
  - id: answers-public
    severity: labels
    needs: no-network
    affects: [prepare]
    v2: kept
    about: 'Test rows keep their ids, and the answers to these are in the public training data of Kaggle.'
"""
_DESCRIPTION = """\
<!-- CHECK: {licence} -->
# {title}

## Overview

{overview}

## Data

{data}

## Evaluation

{evaluation}

## Submission

A CSV with a header, and one row for each row of `{sample}`, in any order.

```
{example}
```
"""
_LICENCE = (
    "the texts are those of Kaggle's pages, which Kaggle's terms and the competition's rules let you keep for your own "
    "agents, not publish; read them, remove what is wrong for this test set, then remove this line"
)
_NO_TEXT = "there are no pages of Kaggle: say in your own words what is predicted and why, then remove this line"


def write_folder(folder: Path, about: About, proposal: Proposal, layout: Layout, raw: Download) -> str | None:
    """Write competition.yaml, description.md, prepare.py and grade.py: the whole folder, or nothing of it.

    Returns:
        What is wrong with the folder if it cannot be loaded, or prepare.py does not run on the download, in one line.

    Raises:
        UserError: the code would use what no proposal uses.
    """
    texts = {"prepare.py": prepare_code(proposal, layout), "grade.py": grade_code(proposal)}
    for name, code in texts.items():
        if words := foreign_words(code):
            raise UserError(
                f"nothing is written: names in the download look like code, and {name} would use {', '.join(words)}. "
                "Look at the names of its files and columns; `mlebench new ID` makes a folder to be filled by hand"
            )
    texts |= {"competition.yaml": _facts(about, proposal, layout), "description.md": ""}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as directory:
        draft = Path(directory) / folder.name
        draft.mkdir()
        for name, text in texts.items():
            (draft / name).write_text(text, "utf-8")
        names, example, problem = _public_names(draft, raw)
        (draft / "description.md").write_text(_description(about, proposal, names, example), "utf-8")
        draft.rename(folder)
    return problem


def _public_names(folder: Path, raw: Download) -> tuple[list[str], str, str | None]:
    """The top-level names of the files that prepare.py makes public, first rows of its sample, and what is wrong."""
    try:
        prepared = Competition.load(folder).declare(raw)
        sample = prepared.public.operations[SAMPLE]
        first = next(iter(sample.pieces()), b"") if isinstance(sample, Content) else b""
        example = "\n".join(first.decode().splitlines()[: _EXAMPLES + 1])
    except Exception as error:  # the code is a proposal
        problem = f"prepare.py does not run on the download yet: {type(error).__name__}: {one_line(error)[:200]}"
        if isinstance(error, BadCompetition):
            problem = one_line(error).replace(f"{folder}/", "")
        return ["train.csv", SAMPLE], "", problem
    return sorted({path.partition("/")[0] + "/" * ("/" in path) for path in prepared.public.operations}), example, None


def _facts(about: About, proposal: Proposal, layout: Layout) -> str:
    category, sure = _category(proposal, layout)
    choices = ", ".join(name for name in get_args(Category) if name != "unknown")
    metric = proposal.metric.value
    direction, wrong = _direction(about, proposal)
    return _FACTS.format(
        id=about.id,
        name=quoted(about.title or about.id.replace("-", " ").capitalize()),
        category=category,
        category_mark="" if sure else mark(f"choose one of {choices}"),
        ended=f"ended: {about.ended}\n" if about.ended else "",
        size=f"size_bytes: {about.archive_bytes}\n" if about.archive_bytes else "",
        metric=quoted(metric.name),
        direction=direction,
        direction_mark=wrong,
        holdout=quoted(proposal.split.value.words),
        resampling=_resampling(proposal),
        leaderboard=_leaderboard(about, direction),
        answers=ANSWERS,
        sample=SAMPLE,
        submission="\n".join(_submission(proposal)),
        # The correlation with the same prediction in every row is not defined.
        oddities="oddities: [sample-scores-nan]\n" if metric.module == "correlation" else "",
    )


def _direction(about: About, proposal: Proposal) -> tuple[Direction, str]:
    """Which scores are better, by Kaggle's leaderboard before the metric; and the mark of that line."""
    metric = proposal.metric.value
    if len(about.scores) > 1 and about.scores[0] != about.scores[-1]:
        theirs: Direction = "higher" if about.scores[0] > about.scores[-1] else "lower"
        doubt = f"as on Kaggle's leaderboard, but {metric.direction} is better of {metric.name}: is it the metric?"
        return theirs, "" if theirs == metric.direction else mark(doubt)
    return metric.direction, mark("which scores are better?") if metric.cells == "none" else ""


def _resampling(proposal: Proposal) -> str:
    """The line that says which rows of the test set belong together, if whole units are held out."""
    split = proposal.split.value
    if split.by != "units":
        return ""
    if split.pattern:
        return f"resampling: {{pattern: {quoted(split.pattern)}}}\n"
    labels = proposal.columns.labels.value
    if labels is not None and split.column == labels.ids:
        return f"resampling: {{id: {quoted(proposal.columns.ids.value[0])}}}\n"
    if unit_of_answers(proposal):
        return f"resampling: {{column: {quoted(split.column)}}}\n"
    reason = f"rows of one {split.column} belong together, and answers do not name it"
    return f"resampling: {{unknown: {quoted(reason)}}}\n"


def _category(proposal: Proposal, layout: Layout) -> tuple[Category, bool]:
    names = [name for files in layout.files.values() for name in files[:_SUFFIXES]]
    suffixes = [Path(name).suffix.lower() for name in names]
    kind, labels = proposal.kind.value, proposal.columns.labels.value
    if sum(suffix in _IMAGES for suffix in suffixes) > len(names) / 2:
        return _CATEGORY_OF_IMAGES.get(kind, "Image Classification"), proposal.kind.sure
    if sum(suffix in _SOUNDS for suffix in suffixes) > len(names) / 2:
        return "Audio Classification", proposal.kind.sure
    if labels is None or len(names) > len(layout.tables):
        return "unknown", False
    rows = labels.table.rows.drop(columns=list(labels.source)).head(_SUFFIXES)
    lengths = [rows[name].dropna().astype(str).str.len().mean() for name in rows if rows[name].dtype == object]
    if any(length > _TEXT_CHARACTERS for length in lengths):
        return ("Text (Other)" if kind in ("text", "number", "several numbers") else "Text Classification"), True
    return "Tabular", True


def _leaderboard(about: About, direction: str) -> str:
    if not about.scores:
        doubt = mark("Kaggle's leaderboard is not known: state the scores that earn medals")
        return f"  teams: 1{doubt}\n  gold: 0\n  silver: 0\n  bronze: 0\n  median: 0\n  human: false"
    board = leaderboard_of(about.scores, direction == "lower")
    lines = [f"  {name}: {getattr(board, name)}" for name in ("teams", "gold", "silver", "bronze", "median")]
    return "\n".join([*lines, f"  percentiles: {board.percentiles}"])


def _submission(proposal: Proposal) -> Iterable[str]:
    columns, metric = proposal.columns, proposal.metric.value
    if not columns.targets:
        yield "  id: {values: id}" + mark("which columns are submitted?")
        return
    for name in columns.ids.value:
        yield f"  {_key(name)}: {{values: id}}"
    values = {
        "numbers": "{values: number}",
        "probabilities": "{values: number, low: 0, high: 1}",
        "classes": "{values: class}",
        "grades": "{values: whole number}",
        "masks": "{values: format, empty: true}",
        "none": "{values: number}" if proposal.kind.value == "number" else "{values: text, empty: true}",
    }.get(metric.cells, "{values: text, empty: true}")
    many = len(columns.targets) > MANY_TARGETS
    for name in ("*",) if many else columns.targets:
        yield f"  {_key(name)}: {values}"


def _key(name: str) -> str:
    """A key of YAML, which needs a question mark if it is long."""
    return quoted(name) if len(name) <= _SHORT_KEY else f"? {quoted(name)}\n  "


def _description(about: About, proposal: Proposal, names: list[str], example: str) -> str:
    metric, columns = proposal.metric.value, proposal.columns
    scores = f"{metric.name[0].upper()}{metric.name[1:]}. {_direction(about, proposal)[0].capitalize()} is better."
    split = proposal.split.value
    what = f"first part of {split.column}" if split.pattern else split.column
    unit = f"\n\nNo {what} of the test set is in the training set." if split.by == "units" else ""
    unit = f"\n\nAll rows of the test set are later by {split.column}." if split.by == "time" else unit
    return _DESCRIPTION.format(
        licence=_LICENCE if about.pages else _NO_TEXT,
        title=about.title or about.id,
        overview=_plain(about.page("description", "overview", "abstract")) or "(what has to be predicted, and why)",
        data="\n".join(f"- `{name}`" for name in names) + unit + f"\n\n{_plain(about.page('data'))}".rstrip(),
        evaluation=f"{scores}\n\n{_plain(about.page('evaluation'))}".strip(),
        sample=SAMPLE,
        example=example or ",".join([*columns.ids.value, *columns.targets]) or "id,target",
    )


def _plain(text: str) -> str:
    """A page without headings of the first two levels, which are those of the description."""
    return "\n".join(f"##{line}" if line.startswith(("# ", "## ")) else line for line in text.strip().splitlines())
