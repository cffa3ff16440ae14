"""The text of prepare.py."""

from __future__ import annotations

import keyword
from dataclasses import replace
from pathlib import PurePosixPath

from competitions.proposals.columns import Columns, Labels
from competitions.proposals.findings import Finding, mark
from competitions.proposals.layout import MANY, Layout, in_pattern, quoted, source
from competitions.proposals.pictures import FileSet
from competitions.proposals.propose import Proposal
from competitions.proposals.split import Split
from competitions.proposals.table_code import SAMPLE, extra_lines, table_lines, training_rows

ANSWERS = "private/test.csv"
MANY_TARGETS = 10  # columns up to which competition.yaml names them


def prepare_code(proposal: Proposal, layout: Layout) -> str:
    """The text of prepare.py."""
    columns, labels = proposal.columns, proposal.columns.labels.value
    if labels is None:
        return _file(_without_labels(proposal))
    twin = training_rows(layout, columns, labels)
    others = [table for table in layout.tables if table is not twin]
    extra = [line for table in others for line in extra_lines(table, columns, labels, proposal.split.value)]
    lines = [
        *_split(labels, proposal.split, columns.labels),
        *_answers(columns, labels, proposal),
        "out = Preparation()",
        *table_lines(columns, labels, twin, bool(extra or proposal.files.value)),
        *extra,
        *(line for each in proposal.files.value for line in _copies(each, labels)),
        *(_folders(labels) if labels.of_folders else []),
    ]
    if not proposal.files.sure:  # files that belong to no row
        lines.append(mark(f"{proposal.files.reason}; see that agents get the files they need").strip())
    return _file(lines)


def _file(lines: list[str]) -> str:
    """prepare.py with these lines of its function, and the imports that they need."""
    body = "".join(f"    {line}\n" for line in [*lines, "return out"])
    functions = [name for name in ("hold_out", "hold_out_by", "hold_out_last", "one_hot") if f"{name}(" in body]
    imports = [
        *(["import pandas as pd", ""] if "pd." in body else []),
        "from competitions.editions import Edition",
        *(["from competitions.preparing.coco import labelled_images"] if "labelled_images(" in body else []),
        "from competitions.preparing.declaration import Params, Preparation",
        "from competitions.preparing.download import Download",
        f"from competitions.preparing.holdout import {', '.join(functions)}",
    ]
    definition = "def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:"
    return "\n".join([*imports, "", "", definition, body])


def _without_labels(proposal: Proposal) -> list[str]:
    reason = proposal.columns.labels.reason
    ids, targets = list(proposal.columns.ids.value) or ["id"], list(proposal.columns.targets) or ["target"]
    return [
        f'table = raw.read_csv("train.csv"){mark(reason)}',
        "train, test = hold_out(table, 0.1)",
        f"answers = test[{quoted([*ids, *targets[:MANY]])}]",
        "out = Preparation()",
        'out.public.table("train.csv", train)',
        f'out.public.table("test.csv", test.drop(columns={quoted(targets[:MANY])}))',
        'out.private.table("test.csv", answers)',
        "sample = answers.copy()",
        f"sample[{quoted(targets[:MANY])}] = 0",
        f'out.public.table("{SAMPLE}", sample)',
        "# CHECK: copy the files of train and test, as out.public.copies(raw.each(...))",
    ]


def _split(labels: Labels, split: Finding[Split], found: Finding[Labels | None]) -> list[str]:
    chosen = split.value
    read = f"table = {labels.table.reader}{found.mark()}"
    column = quoted(chosen.column)
    if not chosen.pattern:
        call = {
            "rows": f"hold_out(table, {chosen.share})",
            "time": f"hold_out_last(table, {column}, {chosen.share})",
            "units": f"hold_out_by(table, {column}, {chosen.share})",
        }[chosen.by]
        return [read, f"train, test = {call}{split.mark()}"]
    first = f"table[{column}].astype(str).str.extract({quoted(chosen.pattern)}, expand=False)"
    return [
        read,
        f"units = table.assign(unit={first}){split.mark()}",
        f'train, test = (part.drop(columns="unit") for part in hold_out_by(units, "unit", {chosen.share}))',
    ]


def _answers(columns: Columns, labels: Labels, proposal: Proposal) -> list[str]:
    """Lines that make `answers` and `sample`, with the columns of submissions."""
    ids, targets = list(columns.ids.value), list(columns.targets)
    lines = []
    many = len(targets) > MANY
    if many or labels.form != "columns":
        sample = columns.sample.value
        assert sample is not None, "there are no targets without a sample submission"
        lines.append(f"names = list({replace(sample, texts=[]).reader}.columns[{len(ids)}:])")
    own = [labels.ids, *ids[1:]]
    renamed = {old: new for old, new in zip(own, ids, strict=True) if old != new}
    if labels.form == "columns":
        renamed |= {old: new for old, new in zip(labels.source, targets, strict=True) if old != new}
        names = "names" if many else quoted([*own, *labels.source])
        chosen = f"test[[{', '.join(map(quoted, own))}, *names]]" if many else f"test[{names}]"
    elif labels.form == "one-hot":
        cells = labels.table.rows[labels.source[0]]
        as_text = ".astype(str)" if cells.dtype.kind in "iufb" else ""
        chosen = f"test[{quoted(own)}].join(one_hot(test[{quoted(labels.source[0])}]{as_text}, names))"
    else:
        dummies = f"test[{quoted(labels.source[0])}].str.get_dummies({quoted(labels.separator)})"
        chosen = f"test[{quoted(own)}].join({dummies}.reindex(columns=names, fill_value=0))"
    if renamed:
        chosen += ".rename(columns={" + ", ".join(f"{quoted(a)}: {quoted(b)}" for a, b in renamed.items()) + "})"
    lines.append(f"answers = {chosen}{columns.ids.mark()}")
    value = _constant(columns, labels, proposal.kind.value)
    names = "names" if many or labels.form != "columns" else quoted(targets)
    if len(targets) == 1 and _is_plain(targets[0]):
        lines.append(f"sample = answers.assign({targets[0]}={value})")
    else:
        lines += ["sample = answers.copy()", f"sample[{names}] = {value}"]
    if (unit := unit_of_answers(proposal)) and unit != labels.ids:
        lines.append(f"answers = answers.join(test[[{quoted(unit)}]])")
    return lines


def unit_of_answers(proposal: Proposal) -> str:
    """The column that is held out whole, if the answers name it, which tells how sure scores are; else ""."""
    split, columns = proposal.split.value, proposal.columns
    known = (*columns.ids.value, *columns.targets, *(columns.labels.value.source if columns.labels.value else ()))
    few = len(columns.targets) <= MANY_TARGETS  # else competition.yaml takes every further column for a target
    return split.column if split.by == "units" and not split.pattern and few and split.column not in known else ""


def _is_plain(name: str) -> bool:
    """Whether a column's name can be written as the name of an argument of `DataFrame.assign`."""
    plain = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
    return plain and name != "self" and not name.startswith("__")


def _constant(columns: Columns, labels: Labels, kind: str) -> str:
    """What the sample submission predicts everywhere: what Kaggle's has most often."""
    sample = columns.sample.value
    if kind == "class probabilities":
        return "1 / len(names)" if len(columns.targets) > MANY else f"1 / {len(columns.targets)}"
    if sample is None or not len(sample.rows):
        return "0"
    cells = sample.rows[columns.targets[0]].dropna()
    if cells.empty and labels.form == "columns":  # then the most frequent answer
        cells = labels.table.rows[labels.source[0]].dropna()
    if cells.empty:
        return '""'
    value = cells.mode().iloc[0]
    return quoted(value.item() if hasattr(value, "item") else value)


def _copies(each: FileSet, labels: Labels) -> list[str]:
    raw, column = source(each.archive), quoted(each.column)
    prefix = "" if not each.archive else f"{in_pattern(PurePosixPath(each.archive).name.partition('.')[0])}/"
    inside = each.pattern
    if "**" in inside:
        return _scattered(each, prefix, labels)
    if prefix and inside.startswith(prefix):
        prefix = ""
    to_train, to_test = prefix + inside, (prefix + inside).replace("train", "test")
    if each.folder:
        folder, to_train, to_test = (text.rstrip("/") for text in (inside, to_train, to_test))
        parts = f"(train, {quoted(to_train)})," + ("" if each.only_train else f" (test, {quoted(to_test)})")
        return [
            f"for part, folder in ({parts}):",
            f"    for name in part[{column}].unique():",
            f"        out.public.copy_tree(folder.format(name), {raw}, {quoted(folder)}.format(name))",
        ]
    once = ".unique()" if labels.table.rows[each.column].duplicated().any() else ""
    lines = []
    for part, to in (("train", to_train), ("test", to_test))[: 1 if each.only_train else 2]:
        option = f", to={quoted(to)}" if to != inside else ""
        lines.append(f"out.public.copies({raw}.each({quoted(inside)}, {part}[{column}]{once}{option}))")
    return lines


def _scattered(each: FileSet, prefix: str, labels: Labels) -> list[str]:
    """Lines for files in folders that no column names. Those of the test set get one folder: theirs may tell labels."""
    raw, column = source(each.archive), quoted(each.column)
    once = ".drop_duplicates()" if labels.table.rows[each.column].duplicated().any() else ""
    top, end = each.pattern.partition("/**/")[::2]
    key = 'path.rpartition("/")[2]' + ("" if end == "{}" else f".removesuffix({quoted(end.removeprefix('{}'))})")
    to = f"{_of_test(top)}/{end}"
    there = f", to={quoted(prefix + '{}')}" if prefix else ""
    lines = [
        f"paths = {{{key}: path for path in {raw}.names({quoted(top)})}}",
        f'out.public.copies({raw}.each("{{}}", train[{column}]{once}.map(paths){there}))',
    ]
    if each.only_train:
        return lines
    return [
        *lines,
        f"names = test[{column}]{once}",
        f'out.public.copies({raw}.each("{{}}", names.map(paths), names, to={quoted(to.replace("{}", "{1}"))}))',
    ]


def _folders(labels: Labels) -> list[str]:
    """Lines for files in folders named after classes."""
    raw, pattern = source(labels.table.archive), labels.table.name
    top = in_pattern(pattern.partition("/*")[0])
    file, label = (f"[{quoted(name)}]" for name in (labels.ids, labels.source[0]))
    to = f"{_of_test(top)}/{{1}}"
    return [
        f"out.public.copies({raw}.each({quoted(top + '/{}/{}')}, train{label}, train{file}))",
        f"out.public.copies({raw}.each({quoted(top + '/{}/{}')}, test{label}, test{file}, to={quoted(to)}))",
    ]


def _of_test(folder: str) -> str:
    """The folder for files of test rows, beside one with files of training rows."""
    return folder.replace("train", "test") if "train" in folder else "test"
