"""Helpers of graders and preparers in the published format: one-hot tables, masks, the inputs of common metrics.

Results for metrics are dictionaries with the names of scikit-learn's arguments: `accuracy_score(**inputs)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def df_to_one_hot(df: pd.DataFrame, id_column: str, target_column: str, classes: Sequence[str]) -> pd.DataFrame:
    """The id column, and for each class a column of 1 where `target_column` is this class and 0 elsewhere.

    Raises `ValueError` for a target that is none of the classes.
    """
    import numpy as np
    import pandas as pd

    codes = pd.Index(classes).get_indexer(pd.Index(df[target_column]))
    if (codes < 0).any():
        raise ValueError(
            f"`{target_column}` has {df[target_column][codes < 0].iloc[0]!r}, which is none of the classes"
        )
    one_hot = pd.DataFrame(np.eye(len(classes), dtype=int)[codes], columns=list(classes), index=df.index)
    one_hot.insert(0, id_column, df[id_column])
    return one_hot


def is_one_hot_encoded(df: pd.DataFrame) -> bool:
    """Whether all cells are 0 or 1, and each row has exactly one 1."""
    return bool(df.isin([0, 1]).all().all() and (df.sum(axis=1) == 1).all())


def one_hot_dfs_to_log_loss_inputs(
    submission_one_hot: pd.DataFrame,
    answers_one_hot: pd.DataFrame,
    id_column: str = "id",
    apply_softmax: bool = True,
) -> dict[str, NDArray[Any]]:
    """The matrices `y_true` and `y_pred` (n, classes) for `log_loss`, with rows in the order of ids.

    Args:
        submission_one_hot: the id column and a column for each class; further columns are ignored.
        answers_one_hot: the id column and a one-hot encoded column for each class.
        id_column: name of the id column of both.
        apply_softmax: turn the rows of the submission, whatever numbers they are, into probabilities.

    Raises:
        InvalidSubmissionError: columns or ids are missing, or a cell is no number; without softmax, also if a row is
            not one of probabilities that sum to 1.
        ValueError: the answers are not one-hot encoded.
    """
    from scipy.special import softmax

    from competitions.scoring.cells import numbers, probability_rows
    from competitions.scoring.checks import align

    classes = [name for name in answers_one_hot.columns if name != id_column]
    if not is_one_hot_encoded(answers_one_hot[classes]):
        raise ValueError("the answers are not one-hot encoded")
    submission, answers = align(submission_one_hot, answers_one_hot, on=id_column, columns=classes)
    predicted = (
        softmax(numbers(submission, classes), axis=-1) if apply_softmax else probability_rows(submission, classes)
    )
    return {"y_true": answers[classes].to_numpy(), "y_pred": predicted}


def prepare_for_accuracy_metric(
    submission: pd.DataFrame, answers: pd.DataFrame, target_column: str, id_column: str
) -> dict[str, NDArray[Any]]:
    """The vectors `y_true` and `y_pred` for `accuracy_score`, with rows in the order of ids.

    Raises `InvalidSubmissionError` for missing columns, another number of rows, or other ids than those of the answers.
    """
    from competitions.scoring.checks import align

    submission, answers = align(submission, answers, on=id_column, columns=[target_column])
    return {"y_true": answers[target_column].to_numpy(), "y_pred": submission[target_column].to_numpy()}


def prepare_for_auroc_metric(
    submission: pd.DataFrame, answers: pd.DataFrame, id_col: str, target_col: str
) -> dict[str, NDArray[Any]]:
    """The vectors `y_true` and `y_score` for `roc_auc_score`, with rows in the order of ids.

    Raises `InvalidSubmissionError` as `prepare_for_accuracy_metric` does, and for scores that are no numbers in [0, 1].
    """
    from competitions.scoring.cells import probabilities
    from competitions.scoring.checks import align

    submission, answers = align(submission, answers, on=id_col, columns=[target_col])
    return {"y_true": answers[target_col].to_numpy(), "y_score": probabilities(submission, target_col)}


def rle_decode(rle_string: str, height: int, width: int) -> NDArray[Any]:
    """The mask (height, width) of 0 and 1 that a text `start length start length ...` encodes; blank text is empty.

    Pixels are numbered from 1, down the first column, then down the next. Runs beyond the last pixel are cut off.
    Raises `InvalidSubmissionError` for what is no such text: other than whole numbers from 1, decreasing starts,
    overlaps.

    >>> rle_decode("1 2 4 1", height=2, width=3)
    array([[1, 0, 0],
           [1, 1, 0]], dtype=uint8)
    """
    import numpy as np

    from competitions.scoring.errors import InvalidSubmission
    from competitions.scoring.metrics.rle_masks import parse_rle, to_mask

    if not isinstance(rle_string, str):
        raise InvalidSubmission(f"a mask is a text of run lengths, not {rle_string!r}")
    try:
        runs = parse_rle(rle_string, height * width)
    except ValueError as error:
        raise InvalidSubmission(f"a mask is not run-length encoded: {error}") from error
    return to_mask(runs, height * width).reshape(width, height).T.astype(np.uint8)


def rle_encode(img: NDArray[Any]) -> str:
    """The text that `rle_decode` turns into the mask `img` (height, width).

    >>> import numpy as np
    >>> rle_encode(np.array([[1, 0, 0], [1, 1, 0]]))
    '1 2 4 1'
    """
    from competitions.scoring.metrics.rle_masks import encode_rle

    return encode_rle(img.ravel(order="F"))


def rles_to_masks(rles: Sequence[str], heights: int | Sequence[int], widths: int | Sequence[int]) -> list[NDArray[Any]]:
    """`rle_decode` of each text. Sizes are one number for all masks, or one for each."""
    count = len(rles)
    each_height: Any = [heights] * count if isinstance(heights, Integral) else heights
    each_width: Any = [widths] * count if isinstance(widths, Integral) else widths
    return [
        rle_decode(rle, int(height), int(width))
        for rle, height, width in zip(rles, each_height, each_width, strict=True)
    ]


def get_ids_from_tf_records(tfrecord_path: str | Path) -> list[str]:
    """The text in the feature `image_name` of each record of a TFRecord file. Raises `DownloadError` if it has none."""
    from competitions.preparing.download import Download
    from competitions.preparing.tfrecord import texts

    path = Path(tfrecord_path)
    return list(texts(Download.open(str(path.parent)), path.name, "image_name"))
