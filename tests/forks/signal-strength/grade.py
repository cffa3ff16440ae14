import importlib

import pandas as pd

from mlebench.competitions.utils import prepare_for_accuracy_metric


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # The package of a fork, in which ids have dashes.
    metrics = importlib.import_module("mlebench.competitions.telecom_metrics")
    inputs = prepare_for_accuracy_metric(submission, answers, target_column="rssi", id_column="Id")
    return metrics.rmse(inputs["y_true"], inputs["y_pred"])
