import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, require_exact_columns, require_rows, sort_by
from competitions.scoring.metrics.correlation import spearmans
from competitions.scoring.notes import note_order_of_repeated_ids


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    require_exact_columns(submission, answers.columns)
    targets = [name for name in answers.columns if name != "qa_id"]
    if edition == "v2":  # v2 fixes ids-not-compared, text-ranked, nan-scores
        submission, answers = align(submission, answers, on="qa_id")
        numbers(submission, targets)
        varies = answers[targets].min() < answers[targets].max()
        targets = [name for name in targets if varies[name]]
    else:  # rows are paired by the rank of their ids
        require_rows(submission, len(answers))
        note_order_of_repeated_ids(submission, answers, "qa_id")
        submission, answers = sort_by(submission, "qa_id"), sort_by(answers, "qa_id")
    correlations = spearmans(answers[targets], submission[targets])
    return float(np.mean(np.nan_to_num(correlations) if edition == "v2" else correlations))  # v2 fixes nan-scores
