"""Helpers of graders in the published format, held against scikit-learn, scipy and loops in plain Python."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.preprocessing import LabelBinarizer

from competitions.scoring.errors import InvalidSubmission
from mlebench.competitions import utils

CLASSES = ["cat", "dog", "emu"]
LABELS = pd.DataFrame({"id": [3, 1, 2], "animal": ["dog", "cat", "emu"]})
MASKS = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(0, 1), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    )
)


def test_labels_become_columns() -> None:
    one_hot = utils.df_to_one_hot(LABELS, "id", "animal", CLASSES)
    assert list(one_hot.columns) == ["id", *CLASSES]
    assert one_hot["id"].tolist() == [3, 1, 2]
    assert (one_hot[CLASSES].to_numpy() == LabelBinarizer().fit(CLASSES).transform(LABELS["animal"])).all()
    assert utils.is_one_hot_encoded(one_hot[CLASSES])
    with pytest.raises(ValueError, match="'emu', which is none"):
        utils.df_to_one_hot(LABELS, "id", "animal", ["cat", "dog"])


@pytest.mark.parametrize("rows", [[[0, 0]], [[1, 1]], [[2, -1]], [[0.5, 0.5]], [[np.nan, 1]]])
def test_other_tables_are_not_one_hot(rows: list[list[float]]) -> None:
    assert not utils.is_one_hot_encoded(pd.DataFrame(rows))


@pytest.fixture
def answers() -> pd.DataFrame:
    return utils.df_to_one_hot(LABELS, "id", "animal", CLASSES)


@pytest.fixture
def submission() -> pd.DataFrame:
    """Rows and columns in another order, and a column too many."""
    rows = {"emu": [0.5, 0.125, 0.25], "cat": [0.25, 0.5, 0.25], "dog": [0.25, 0.375, 0.5]}
    return pd.DataFrame({**rows, "id": [1, 2, 3], "further": "x"})


def test_the_inputs_of_the_log_loss(submission: pd.DataFrame, answers: pd.DataFrame) -> None:
    by_id = submission.set_index("id")[CLASSES].loc[[1, 2, 3]].to_numpy()
    truth = answers.set_index("id").loc[[1, 2, 3]].to_numpy()
    inputs = utils.one_hot_dfs_to_log_loss_inputs(submission, answers, id_column="id", apply_softmax=False)
    assert (inputs["y_true"] == truth).all()
    assert (inputs["y_pred"] == by_id).all()
    assert log_loss(inputs["y_true"], inputs["y_pred"]) == pytest.approx(-np.log([0.25, 0.125, 0.5]).mean())
    soft = utils.one_hot_dfs_to_log_loss_inputs(submission, answers)
    assert soft["y_pred"] == pytest.approx(softmax(by_id, axis=1))


def test_what_has_no_log_loss_is_invalid(submission: pd.DataFrame, answers: pd.DataFrame) -> None:
    for wrong in (submission[:2], submission.drop(columns="cat"), submission.assign(id=7), submission.assign(cat="x")):
        with pytest.raises(InvalidSubmission):
            utils.one_hot_dfs_to_log_loss_inputs(wrong, answers)
    with pytest.raises(InvalidSubmission, match="sum to 1"):
        utils.one_hot_dfs_to_log_loss_inputs(submission.assign(cat=0.9), answers, apply_softmax=False)
    with pytest.raises(ValueError, match="one-hot"):
        utils.one_hot_dfs_to_log_loss_inputs(submission, answers.assign(cat=1))


def test_the_inputs_of_the_accuracy() -> None:
    submission = pd.DataFrame({"animal": ["cat", "cat", "dog"], "id": [1, 2, 3]})
    inputs = utils.prepare_for_accuracy_metric(submission, LABELS, target_column="animal", id_column="id")
    assert accuracy_score(**inputs) == 2 / 3
    for wrong in (submission[:2], submission.drop(columns="animal"), submission.assign(id=[1, 1, 2])):
        with pytest.raises(InvalidSubmission):
            utils.prepare_for_accuracy_metric(wrong, LABELS, target_column="animal", id_column="id")


def test_the_inputs_of_the_area_under_the_curve() -> None:
    answers = pd.DataFrame({"id": ["c", "a", "b"], "y": [1, 0, 1]})
    submission = pd.DataFrame({"id": ["a", "b", "c"], "y": [0.5, 0.25, 0.75]})
    inputs = utils.prepare_for_auroc_metric(submission, answers, id_col="id", target_col="y")
    assert roc_auc_score(**inputs) == 0.5
    for wrong in (submission.assign(y=1.5), submission.assign(y="x"), submission.assign(y=np.nan), submission[1:]):
        with pytest.raises(InvalidSubmission):
            utils.prepare_for_auroc_metric(wrong, answers, id_col="id", target_col="y")


@given(MASKS)
def test_masks_are_encoded_and_decoded(rows: list[list[int]]) -> None:
    mask = np.array(rows, dtype=np.uint8)
    text = utils.rle_encode(mask)
    numbers = list(map(int, text.split()))
    pixels = [
        n for start, length in zip(numbers[::2], numbers[1::2], strict=True) for n in range(start, start + length)
    ]
    down_the_columns = [value for column in zip(*rows, strict=True) for value in column]
    assert pixels == [number for number, value in enumerate(down_the_columns, 1) if value]
    assert (utils.rle_decode(text, *mask.shape) == mask).all()
    assert (utils.rles_to_masks([text, ""], *mask.shape)[0] == mask).all()


def test_sizes_of_masks_differ() -> None:
    first, second = utils.rles_to_masks(["1 2", "4 9"], [2, 1], [1, 5])
    assert first.tolist() == [[1], [1]]
    assert second.tolist() == [[0, 0, 0, 1, 1]]
    assert utils.rles_to_masks(["1 2"], np.int64(2), np.int64(1))[0].tolist() == [[1], [1]]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["x", "1.0 2", "0 1", "3 0", "3 1 1 1", "1 3 2 1", "1 1 2 1 3", None, 7, np.nan])
def test_other_texts_are_no_masks(text: object) -> None:
    with pytest.raises(InvalidSubmission):
        utils.rle_decode(text, 3, 3)  # type: ignore[arg-type]


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protobuf message; `content` is short."""
    return bytes([number << 3 | 2, len(content)]) + content


def test_ids_of_record_files_are_read(tmp_path: Path) -> None:
    frames = b""
    for name in ("a.jpg", "b.jpg"):
        feature = field(1, field(1, name.encode()))
        example = field(1, field(1, field(1, b"image_name") + field(2, feature)))
        frames += struct.pack("<QI", len(example), 0) + example + b"\0" * 4
    (tmp_path / "train00-2.tfrec").write_bytes(frames)
    assert utils.get_ids_from_tf_records(tmp_path / "train00-2.tfrec") == ["a.jpg", "b.jpg"]
