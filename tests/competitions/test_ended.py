"""The months in which competitions ended are those of Kaggle's own table of competitions.

`deadlines.csv` has the column `DeadlineDate` of the table `Competitions` of Meta Kaggle
(https://www.kaggle.com/datasets/kaggle/meta-kaggle), as of September 2023. An older copy, of March 2022, has the same
dates.
"""

from __future__ import annotations

import csv
from pathlib import Path

from competitions import registry

DEADLINES = {
    row["competition"]: row["deadline"]
    for row in csv.DictReader(Path(__file__).with_name("deadlines.csv").read_text("utf-8").splitlines())
}
LATER = {  # after the table was made, so that nothing here confirms them
    "hms-harmful-brain-activity-classification": "2024-04",
    "learning-agency-lab-automated-essay-scoring-2": "2024-07",
    "lmsys-chatbot-arena": "2024-08",
}


def test_every_month_is_that_of_the_deadline() -> None:
    stated = {name: registry.get(name).facts.ended for name in (*registry.list("all"), *registry.list("dev"))}
    assert stated.pop("spaceship-titanic") is None, "it never ends"
    assert stated == {name: deadline[:7] for name, deadline in DEADLINES.items()} | LATER
