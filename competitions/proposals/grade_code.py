"""The text of grade.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from competitions.proposals.findings import mark
from competitions.proposals.layout import quoted
from competitions.proposals.metrics import Metric
from competitions.proposals.prepare_code import ANSWERS, MANY, unit_of_answers
from competitions.proposals.propose import Proposal
from competitions.tables.type_inference import MISSING


@dataclass(frozen=True)
class _Body:
    """Lines of `grade` after `align`, and the functions of `cells` that they call."""

    lines: tuple[str, ...]
    cells: tuple[str, ...] = ()
    mark: str = ""


def grade_code(proposal: Proposal) -> str:
    """The text of grade.py. Answers have the columns of submissions."""
    columns, metric = proposal.columns, proposal.metric.value
    ids, targets = columns.ids.value, columns.targets
    few = 0 < len(targets) <= MANY
    body = _body(metric, targets, proposal.kind.value, _grades(proposal))
    if metric.cells == "classes" and len(targets) == 1 and _has_empty(proposal):
        filled = (
            f'submission, answers = (table.fillna({{{quoted(targets[0])}: ""}}) for table in (submission, answers))'
        )
        body = replace(body, lines=(filled, *body.lines))
    imports = ["import pandas as pd", "", "from competitions.editions import Edition"]
    if "np." in "".join(body.lines):
        imports.insert(0, "import numpy as np")
    if by_texts := _are_told_apart_as_texts_only(proposal):
        imports.append("from competitions.scoring import reading")
    if body.cells:
        imports.append(f"from competitions.scoring.cells import {', '.join(sorted(body.cells))}")
    imports.append("from competitions.scoring.checks import align")
    if "rle_columns(" in "".join(body.lines):
        imports.append("from competitions.scoring.compound_cells import rle_columns")
    if "split_items(" in "".join(body.lines):
        imports.append("from competitions.scoring.metrics.items import split_items")
    if metric.module:
        function = metric.of_several if len(targets) > 1 and metric.of_several else metric.function
        function = "log_loss_terms" if "log_loss_terms(" in "".join(body.lines) else function
        imports.append(f"from competitions.scoring.metrics.{metric.module} import {function}")
    on = quoted(ids[0]) if ids else '"id"'
    on_mark = columns.ids.mark()
    names = quoted(list(targets)) if few else "names"
    unit = unit_of_answers(proposal)
    apart = f"name not in ({on}, {quoted(unit)})" if unit else f"name != {on}"
    lines = [] if few else [f"    names = [name for name in answers.columns if {apart}]"]
    lines += [f"    submission, answers = align(submission, answers, on={on}, columns={names}){on_mark}"]
    *before, last = body.lines
    reason = body.mark or ("" if proposal.metric.sure else proposal.metric.reason)
    lines += [f"    {line}" for line in before] + [f"    {last}{mark(reason) if reason else ''}"]
    definition = "def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:"
    if by_texts:
        lines += [
            line
            for name, path in (("answers", f"folder / {quoted(ANSWERS)}"), ("submission", "path"))
            for line in (
                "",
                "",
                f"def read_{name}({path.partition(' ')[0]}):",
                f"    return reading.read_{name}({path}, dtype={{{on}: str}}, keep_default_na=False)",
            )
        ]
    return "\n".join([*imports, "", "", definition, *lines, ""])


def _are_told_apart_as_texts_only(proposal: Proposal) -> bool:
    """Whether ids would be read as missing values, or several of them as the same number."""
    import pandas as pd

    labels = proposal.columns.labels.value
    if labels is None or labels.ids not in labels.table.texts:
        return False
    ids = labels.table.rows[labels.ids]
    numbers = pd.to_numeric(ids, errors="coerce")
    alike = bool(numbers.notna().all()) and numbers.nunique() < ids.nunique()
    return alike or bool(ids.isin([*MISSING, float("nan")]).any())


def _has_empty(proposal: Proposal) -> bool:
    """Whether the classes are texts, some of which are read as missing, such as "" and "null"."""
    labels = proposal.columns.labels.value
    cells = labels.table.rows[labels.source[0]] if labels is not None else None
    return cells is not None and cells.dtype == object and bool(cells.isna().any())


def _grades(proposal: Proposal) -> tuple[int, int]:
    """The lowest and the highest class that is a whole number."""
    labels = proposal.columns.labels.value
    cells = labels.table.rows[labels.source[0]] if labels is not None and len(labels.source) == 1 else None
    if cells is None or cells.dtype.kind not in "iuf" or cells.isna().all():
        return 0, 1
    return int(cells.min()), int(cells.max())


def _body(metric: Metric, targets: Sequence[str], kind: str, grades: tuple[int, int]) -> _Body:
    one = quoted(targets[0]) if len(targets) == 1 else ""
    names = quoted(list(targets)) if len(targets) <= MANY else "names"
    function, options = metric.function, f", {metric.arguments}" if metric.arguments else ""
    if metric.cells == "none" or not targets:
        gap = f"compute {metric.name} of submission and answers"
        if one and kind == "number":
            read = f"predicted = numbers(submission, {one})  # refuses what is no number"
            return _Body((read, 'return float("nan") * len(predicted)'), ("numbers",), mark=gap)
        return _Body(('return float("nan")',), mark=gap)
    if metric.cells == "numbers" and one:
        return _Body((f"return {function}(answers[{one}], numbers(submission, {one}{options}))",), ("numbers",))
    if metric.cells == "numbers" and metric.of_several:
        return _Body(
            (f"return {metric.of_several}(answers[{names}], numbers(submission, {names}{options}))",), ("numbers",)
        )
    if metric.cells == "numbers":
        scores = f"{function}(answers[name], numbers(submission, name{options})) for name in {names}"
        return _Body((f"return sum({scores}) / {len(targets)}",), ("numbers",))
    if metric.cells == "probabilities" and one:
        return _Body((f"return {function}(answers[{one}], probabilities(submission, {one}))",), ("probabilities",))
    if metric.cells == "probabilities" and kind == "several labels":
        terms = f"log_loss_terms(answers[{names}], probabilities(submission, {names}))"
        return _Body((f"return float(np.mean({terms}))",), ("probabilities",))
    if metric.cells == "probabilities":
        return _Body((f"return {function}(answers[{names}], rescaled_rows(submission, {names}))",), ("rescaled_rows",))
    if not one:
        return _Body(('return float("nan")',), mark=f"compute {metric.name} of {len(targets)} columns")
    if metric.cells == "classes":
        predicted = f"labels(submission, {one}, answers[{one}], strict=True)"
        return _Body((f"return {function}(answers[{one}], {predicted})",), ("labels",))
    if metric.cells == "grades":
        low, high = grades
        return _Body(
            (
                f"numbers(submission, {one}, low={low}, high={high})",
                f"predicted = whole_numbers(submission, {one})",
                f"return {function}(answers[{one}], predicted, classes=range({low}, {high + 1}))",
            ),
            ("numbers", "whole_numbers"),
        )
    if metric.cells == "masks":
        return _Body(
            (
                f"pixels = 10**9{mark('the pixels of each image, width times height')}",
                f'tables = (rle_columns(table, {one}, pixels, missing="") for table in (answers, submission))',
                f"return float(np.mean({function}(*tables)))",
            )
        )
    # Cells such as 7 are read as numbers if all are, and as 7.0 beside an empty cell.
    cells = f'(table.convert_dtypes().astype({{{one}: "string"}}) for table in (answers, submission))'
    texts = (f"tables = {cells}", f'true, predicted = (strings(table, {one}, missing="") for table in tables)')
    if metric.cells == "ranked lists":
        return _Body((*texts, f"return {function}(split_items(true), split_items(predicted){options})"), ("strings",))
    if metric.cells == "sets":
        return _Body((*texts, f"return {function}(true, predicted)"), ("strings",))
    plain = "true.to_pylist(), predicted.to_pylist()"
    return _Body((*texts, f"return float(np.nanmean({function}({plain})))"), ("strings",))
