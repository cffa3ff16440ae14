"""Scores that a run may offer.

`score.sh` computes the competition's metric on training rows that were held out, and `public_score.sh` says whether a
submission is better than the ones before on public test rows.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import question

Score = Callable[[pd.DataFrame], "float | None"]


def scorer(asked: question.Question) -> Score | None:
    """A function that scores predictions, indexed by training row, larger for better; it returns None if it cannot.

    None if the run has no scorer, or if TRUTH needs what the training table does not have.
    """
    script, example = os.environ.get("SCORE_SCRIPT"), os.environ.get("EXAMPLE_TRUTH", "")
    if script is None or len(asked.targets) != 1 or not example.endswith(".csv"):
        return None
    target, key = asked.targets[0], str(asked.ids.name)
    columns = pd.read_csv(example, nrows=0).columns
    if not set(columns) <= {key, *target.columns, *asked.train.columns}:
        return None
    usage = subprocess.run(["sh", script, "--help"], capture_output=True, text=True, check=False).stdout
    sign = -1.0 if "lower is better" in usage else 1.0

    def score(predicted: pd.DataFrame) -> float | None:
        rows, values = asked.train.loc[predicted.index], target.values[predicted.index]
        files = pd.DataFrame({key: rows[asked.train_key].to_numpy()})
        truth = files.assign(**{name: rows[name].to_numpy() for name in columns if name in rows})
        for name in target.columns:
            right = {"classes": values == name, "probability": values == target.values.max()}.get(target.kind)
            truth[name] = values.to_numpy() if right is None else right.astype(int).to_numpy()
        question.fill_in(files, target, predicted.reset_index(drop=True))
        if target.kind == "classes":  # most metrics of classes want the chances of a row to sum to 1
            files[target.columns] = files[target.columns].div(files[target.columns].sum(axis=1), axis=0)
        folder = Path(os.environ["TMPDIR"])
        files.to_csv(folder / "predictions.csv", index=False)
        truth[list(columns)].to_csv(folder / "truth.csv", index=False)
        command = ["sh", script, str(folder / "predictions.csv"), str(folder / "truth.csv")]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode:
            print(f"the metric is not known, cross-validation decides: {answer.stderr.strip()[:300]}")
            return None
        return sign * float(answer.stdout)

    return score


def ask_and_choose() -> None:
    """Ask whether the submission is the best so far on public test rows; if so, it is chosen beside the last one."""
    script, folder = os.environ.get("PUBLIC_SCORE_SCRIPT"), Path(os.environ["SUBMISSION_DIR"])
    if script is None:
        return
    command = ["sh", script, str(folder / "submission.csv")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"public score: {(answer.stdout or answer.stderr).strip()[:300]}")
    if answer.returncode == 0 and (told := json.loads(answer.stdout))["improved"]:
        (folder / "final.txt").write_text(f"{told['submission']}\nsubmission.csv\n")
