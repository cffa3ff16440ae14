"""Records in tables/examinations that a run group was examined, even if nothing was found."""

from __future__ import annotations

from storage.runs.records import ExaminationRecord
from storage.store import Store
from storage.tables import write_table


def write_examination(store: Store, record: ExaminationRecord) -> None:
    """Replace the record of the group's last examination of that stage."""
    write_table(store, record.table, record.run_group, [record.to_row()], part=record.stage)
