"""A proposal for a competition's folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from competitions.proposals.about import About
from competitions.proposals.columns import Columns, find_columns
from competitions.proposals.findings import Finding
from competitions.proposals.kinds import Kind, kind_of
from competitions.proposals.layout import Layout
from competitions.proposals.metrics import DEPEND_ON_KIND, Metric, metric_of
from competitions.proposals.pictures import FileSet, file_sets
from competitions.proposals.split import Split, split_of


@dataclass(frozen=True)
class Proposal:
    """What is proposed, each part with its reason."""

    columns: Columns
    kind: Finding[Kind]
    metric: Finding[Metric]
    split: Finding[Split]
    files: Finding[list[FileSet]]

    def lines(self) -> Iterator[tuple[str, str, bool, str]]:
        """What, the proposed value in words, whether it is sure, and the reason."""
        columns, labels = self.columns, self.columns.labels.value
        sample = columns.sample.value
        yield "submissions", sample.name if sample else "?", columns.sample.sure, columns.sample.reason
        yield "ids", ", ".join(columns.ids.value) or "?", columns.ids.sure, columns.ids.reason
        targets = ", ".join(columns.targets[:4]) + (", ..." if len(columns.targets) > 4 else "")
        of_sample = (columns.sample.sure, "the other columns of submissions")
        yield "targets", targets or "?", *(of_sample if sample else (columns.labels.sure, columns.labels.reason))
        yield "labels", labels.table.name if labels else "?", columns.labels.sure, columns.labels.reason
        yield "kind", self.kind.value, self.kind.sure, self.kind.reason
        yield "metric", self.metric.value.name, self.metric.sure, self.metric.reason
        yield "test set", self.split.value.words, self.split.sure, self.split.reason
        patterns = ", ".join(f"{each.archive}{'/' if each.archive else ''}{each.pattern}" for each in self.files.value)
        yield "files", patterns or "none", self.files.sure, self.files.reason


def propose(layout: Layout, about: About) -> Proposal:
    """The proposal for a download with these tables and files."""
    columns = find_columns(layout)
    kind = kind_of(columns.labels.value, columns.targets)
    text = about.page("evaluation", "overview", "description")
    files = file_sets(layout, columns)
    split = split_of(columns, only_tables=not files.value)
    metric = metric_of(kind.value, about.metric, text)
    doubt = kind if not kind.sure else columns.labels
    unseen = columns.labels.value is None or len(columns.targets) > 1 or metric.value.cells in DEPEND_ON_KIND
    if metric.sure and not doubt.sure and unseen:
        metric = Finding(metric.value, f"{metric.reason}; but {doubt.reason}", False)
    if metric.sure and (unfit := _unfit(metric.value, kind.value, columns)):
        metric = Finding(metric.value, f"{metric.reason}; but {unfit}", False)
    return Proposal(columns, kind, metric, _kept_whole(split, files, columns), files)


def _unfit(metric: Metric, kind: Kind, columns: Columns) -> str:
    """Why the function cannot take the answers as they are; "" if it can."""
    labels = columns.labels.value
    if labels is None or labels.form != "columns" or metric.cells not in ("numbers", "probabilities", "grades"):
        return ""
    cells = labels.table.rows[list(labels.source)]
    if any(dtype.kind not in "iufb" for dtype in cells.dtypes):
        return f"the cells of {labels.source[0]} are texts: say which numbers they stand for"
    of_two = metric.cells == "probabilities" or metric.function == "roc_auc"
    if of_two and kind in ("binary", "classes", "number") and not cells.isin([0, 1]).all(axis=None):
        return f"the cells of {labels.source[0]} are not 0 and 1"
    return ""


def _kept_whole(split: Finding[Split], files: Finding[list[FileSet]], columns: Columns) -> Finding[Split]:
    """Files that belong to several rows: those rows cannot be in both parts."""
    labels = columns.labels.value
    for each in files.value if labels is not None and split.value.by == "rows" else ():
        assert labels is not None
        if labels.table.rows[each.column].duplicated().any():
            units = replace(split.value, by="units", column=each.column)
            return Finding(units, f"rows of the same {each.column} share files ({each.pattern})", True)
    return split
