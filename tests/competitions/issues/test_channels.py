"""No channel that our code makes gives labels away in v2; in v1, the scan sees those that are known issues."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions import registry
from competitions.editions import EDITIONS
from tests.competitions.issues._channels import columns_of_answers, leaks, unexpected_files
from tests.competitions.issues._probe import World
from tests.prepared import PreparedCompetitions

PYTHON = "shuffled with a constant seed (Python)"
SEEN_IN_V1 = {
    "herbarium-2020-fgvc7": {PYTHON},
    "herbarium-2021-fgvc8": {PYTHON},
    "herbarium-2022-fgvc9": {PYTHON},
    "hms-harmful-brain-activity-classification": {"ids", "order of rows of test.csv"},  # several rows of a recording
}
"""What the scan finds in miniatures beyond `PART_OF_THE_TASK`. Others are too small, or not in the order of labels."""
PART_OF_THE_TASK = {
    "smartphone-decimeter-2022": {"ids", "order of rows"},  # a drive, second by second
    "tensorflow2-question-answering": {"ids", "order of rows"},  # a long and a short answer of each question
    "text-normalization-challenge-english-language": {"values of the sample submission"},  # the text to normalise
    "text-normalization-challenge-russian-language": {"values of the sample submission"},
    "uw-madison-gi-tract-image-segmentation": {"ids", "order of rows", "order of rows of test.csv"},  # slices of a body
}
"""What tells something of labels because the competition wants it so."""


@pytest.mark.parametrize("name", registry.list())
def test_orders_do_not_tell_labels(name: str, prepared: PreparedCompetitions, tmp_path: Path) -> None:
    assert leaks(World(prepared.get(name, "v2"), tmp_path)) == PART_OF_THE_TASK.get(name, set())


@pytest.mark.parametrize("name", SEEN_IN_V1)
def test_the_scan_sees_what_is_known(name: str, prepared: PreparedCompetitions, tmp_path: Path) -> None:
    assert leaks(World(prepared.get(name, "v1"), tmp_path)) == SEEN_IN_V1[name]


@pytest.mark.parametrize("name", registry.list())
def test_no_table_has_a_column_of_answers_and_no_file_is_left_over(
    name: str, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    for edition in EDITIONS:
        world = World(prepared.get(name, edition), tmp_path)
        assert columns_of_answers(world) == set()
        assert unexpected_files(world) == []
