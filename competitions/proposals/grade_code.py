"""The text of grade.py."""

from __future__ import annotations

import re
from collections.abc import Sequence

from competitions.proposals.findings import mark
from competitions.proposals.layout import MANY, quoted
from competitions.proposals.metrics import Metric
from competitions.proposals.prepare_code import ANSWERS, unit_of_answers
from competitions.proposals.propose import Proposal
from competitions.tables.type_inference import MISSING

_MODULES = {
    **dict.fromkeys(("labels", "numbers", "probabilities", "rescaled_rows", "strings", "whole_numbers"), "cells"),
    "align": "checks",
    "rle_columns": "compound_cells",
    "split_items": "metrics.items",
    "log_loss_terms": "metrics.probability",
}
"""The modules of competitions.scoring in which functions are, besides those that the table of metrics names."""
_DEFINITION = "def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:"
_READERS = """

def read_answers(folder):
    return reading.read_answers(folder / {answers}, dtype={{{id}: str}}, keep_default_na=False)


def read_submission(path):
    return reading.read_submission(path, dtype={{{id}: str}}, keep_default_na=False)
"""


def grade_code(proposal: Proposal) -> str:
    """The text of grade.py. Answers have the columns of submissions."""
    columns, metric = proposal.columns, proposal.metric.value
    ids, targets = columns.ids.value, columns.targets
    few = 0 < len(targets) <= MANY
    on = quoted(ids[0]) if ids else '"id"'
    unit = unit_of_answers(proposal)
    apart = f"name not in ({on}, {quoted(unit)})" if unit else f"name != {on}"
    lines = [] if few else [f"names = [name for name in answers.columns if {apart}]"]
    names = quoted(list(targets)) if few else "names"
    lines.append(f"submission, answers = align(submission, answers, on={on}, columns={names}){columns.ids.mark()}")
    if metric.cells == "classes" and len(targets) == 1 and _has_empty(proposal):
        filled = f'table.fillna({{{quoted(targets[0])}: ""}}) for table in (submission, answers)'
        lines.append(f"submission, answers = ({filled})")
    gap, score = _score(metric, targets, proposal.kind.value, _grades(proposal))
    lines += score
    lines[-1] += mark(gap) if gap else proposal.metric.mark()
    readers = _READERS.format(id=on, answers=quoted(ANSWERS)) if _are_told_apart_as_texts_only(proposal) else ""
    imports = _imports(metric, "\n".join([*lines, readers]))
    return "\n".join([*imports, "", "", _DEFINITION, *(f"    {line}" for line in lines), readers])


def _imports(metric: Metric, code: str) -> list[str]:
    """The lines that import what `code` uses, and the metric's function also where a person has to call it."""
    functions = (metric.function, metric.of_several)
    modules = _MODULES | {function: f"metrics.{metric.module}" for function in functions if function}
    used = {function for function in modules if re.search(rf"\b{function}\(", code)}
    if metric.function and used.isdisjoint((*functions, "log_loss_terms")):
        used.add(metric.function)
    names = {module: sorted(name for name in used if modules[name] == module) for module in sorted(modules.values())}
    return [
        *(["import numpy as np"] if "np." in code else []),
        *("import pandas as pd", "", "from competitions.editions import Edition"),
        *(["from competitions.scoring import reading"] if "reading." in code else []),
        *(f"from competitions.scoring.{module} import {', '.join(names[module])}" for module in names if names[module]),
    ]


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


def _score(metric: Metric, targets: Sequence[str], kind: str, grades: tuple[int, int]) -> tuple[str, list[str]]:
    """What a person has to write, "" if nothing; and the lines that compute the score."""
    one = quoted(targets[0]) if len(targets) == 1 else ""
    names = one or (quoted(list(targets)) if len(targets) <= MANY else "names")
    function, options = metric.function, f", {metric.arguments}" if metric.arguments else ""
    if metric.cells == "none" or not targets:
        lines = ['return float("nan")']
        if one and kind == "number":
            read = f"predicted = numbers(submission, {one})  # refuses what is no number"
            lines = [read, 'return float("nan") * len(predicted)']
        return f"compute {metric.name} of submission and answers", lines
    if metric.cells == "numbers" and (one or metric.of_several):
        function = function if one else metric.of_several
        return "", [f"return {function}(answers[{names}], numbers(submission, {names}{options}))"]
    if metric.cells == "numbers":
        scores = f"{function}(answers[name], numbers(submission, name{options})) for name in {names}"
        return "", [f"return sum({scores}) / {len(targets)}"]
    if metric.cells == "probabilities" and not one and kind == "several labels":
        terms = f"log_loss_terms(answers[{names}], probabilities(submission, {names}))"
        return "", [f"return float(np.mean({terms}))"]
    if metric.cells == "probabilities":
        read = "probabilities" if one else "rescaled_rows"
        return "", [f"return {function}(answers[{names}], {read}(submission, {names}))"]
    if not one:
        return f"compute {metric.name} of {len(targets)} columns", ['return float("nan")']
    if metric.cells == "classes":
        predicted = f"labels(submission, {one}, answers[{one}], strict=True)"
        return "", [f"return {function}(answers[{one}], {predicted})"]
    if metric.cells == "grades":
        low, high = grades
        return "", [
            f"numbers(submission, {one}, low={low}, high={high})",
            f"predicted = whole_numbers(submission, {one})",
            f"return {function}(answers[{one}], predicted, classes=range({low}, {high + 1}))",
        ]
    if metric.cells == "masks":
        return "", [
            f"pixels = 10**9{mark('the pixels of each image, width times height')}",
            f'tables = (rle_columns(table, {one}, pixels, missing="") for table in (answers, submission))',
            f"return float(np.mean({function}(*tables)))",
        ]
    score = {
        "ranked lists": f"{function}(split_items(true), split_items(predicted){options})",
        "sets": f"{function}(true, predicted)",
        "texts": f"float(np.nanmean({function}(true.to_pylist(), predicted.to_pylist())))",
    }[metric.cells]
    # Cells such as 7 are read as numbers if all are, and as 7.0 beside an empty cell.
    return "", [
        f'tables = (table.convert_dtypes().astype({{{one}: "string"}}) for table in (answers, submission))',
        f'true, predicted = (strings(table, {one}, missing="") for table in tables)',
        f"return {score}",
    ]
