"""What cells hold: each check against families of columns as they come out of a CSV."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from competitions.scoring.cells import (
    as_text,
    choices,
    integers,
    labels,
    numbers,
    probabilities,
    probability_rows,
    require_numeric,
    require_row_sums,
    surely_numbers,
    texts,
    whole_numbers,
)
from grading import InvalidSubmission


def column(*cells: str) -> pd.DataFrame:
    """A frame with the column `c`, its types inferred by pandas."""
    return pd.read_csv(io.StringIO("id,c\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))))


def rejects(function: Callable[..., object], *args: Any, hint: str, **options: Any) -> None:
    with pytest.raises(InvalidSubmission, match=hint) as caught:
        function(*args, **options)
    assert "\n" not in str(caught.value)


class TestNumbers:
    @pytest.mark.parametrize(
        ("cells", "values"), [(("1", "2"), [1, 2]), (("True", "False"), [1, 0]), (("-.5", "1e3"), [-0.5, 1000])]
    )
    def test_are_float64(self, cells: tuple[str, str], values: list[Any]) -> None:
        got = numbers(column(*cells), "c")
        assert got.dtype == np.float64
        assert got.tolist() == values

    def test_several_columns_make_a_matrix(self) -> None:
        assert numbers(pd.DataFrame({"a": [1, 2], "b": [3, 4]}), ["b", "a"]).tolist() == [[3, 1], [4, 2]]

    def test_text_is_rejected(self) -> None:
        rejects(numbers, column("1", "maybe"), "c", hint="must hold numbers; it has 1 other cell: 'maybe'")

    def test_empty_cells(self) -> None:
        rejects(numbers, column("1", "", ""), "c", hint="`c` has 2 empty cells; every row needs a number")
        rejects(numbers, column("True", ""), "c", hint="1 empty cell;")
        assert np.isnan(numbers(column("1", ""), "c", missing=True)[1])

    def test_infinity(self) -> None:
        rejects(numbers, column("1", "inf"), "c", hint="1 infinite number")
        assert numbers(column("1", "-inf"), "c", infinite=True)[1] == -np.inf

    def test_limits_are_included(self) -> None:
        assert numbers(column("0", "1"), "c", low=0, high=1).tolist() == [0, 1]
        rejects(numbers, column("0", "1.5"), "c", low=0, high=1, hint=r"1 cell outside \[0, 1\], such as 1.5")
        rejects(numbers, column("0", "-3"), "c", low=0, hint="1 cell below 0, such as -3")

    def test_integers_beyond_64_bits(self) -> None:
        assert numbers(column("1", "9" * 30), "c")[1] == pytest.approx(1e30)


CELLS = [1, 0, -3, 0.5, 1.5, 0.1, np.nan, np.inf, -np.inf, True, "x", "0.25", None, 2**53 + 1, 10**18, 2**63]


class TestNumbersOfManyColumns:
    """All at once gives what a column at a time gives: the same numbers, or the same message."""

    @staticmethod
    def outcome(frame: pd.DataFrame, columns: list[str], options: dict[str, Any]) -> list[Any]:
        try:
            found = numbers(frame, columns, **options)
        except InvalidSubmission as verdict:
            return [str(verdict)]
        assert found.flags.c_contiguous, "sums of rows depend on it"
        return [found.dtype, found.shape, found.tobytes()]

    @pytest.mark.parametrize("seed", range(5))
    def test_outcomes(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        rng, kinds = random.Random(seed), []
        for _ in range(200):
            count, rows = rng.randint(1, 6), rng.randint(0, 4)
            good: list[Any] = rng.choice([[0.5, 0.1, -0.0, 1.0], [1, 0], [True, False], [2**53 + 1, 0], [1.5, -7.0]])
            table = {f"c{place}": [rng.choice(good) for _ in range(rows)] for place in range(count)}
            for _ in range(rng.choice([0, 0, 1, 2]) if rows else 0):
                table[rng.choice(list(table))][rng.randrange(rows)] = rng.choice(CELLS)
            frame = pd.DataFrame(table)
            columns = rng.sample(list(table), rng.randint(1, count))
            options: dict[str, Any] = rng.choice([{}, {"low": 0}, {"low": 0, "high": 1, "infinite": True}])
            options |= {"missing": rng.random() < 0.3}
            monkeypatch.setattr("competitions.scoring.cells.MANY", 1 << 30)
            expected = self.outcome(frame, columns, options)
            monkeypatch.setattr("competitions.scoring.cells.MANY", 0)
            assert self.outcome(frame, columns, options) == expected, frame.to_dict("list")
            low, high = options.get("low", -np.inf), options.get("high", np.inf)
            strict = self.outcome(frame, columns, {"low": low, "high": high})
            sure = surely_numbers(frame, columns, low=low, high=high)
            assert sure <= (len(strict) > 1), "certain of nothing that `numbers` rejects"
            kinds.append((sure, len(strict) > 1))
        assert kinds.count((True, True)) > 20
        assert kinds.count((False, False)) > 20

    def test_many_short_columns_are_taken_from_the_frame_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        frame = pd.DataFrame(np.random.default_rng(0).random((5, 40)), columns=[f"c{place}" for place in range(40)])
        monkeypatch.setattr("competitions.scoring.cells._to_float", None)
        asked: list[object] = []
        ask = pd.DataFrame.__getitem__
        monkeypatch.setattr(pd.DataFrame, "__getitem__", lambda self, key: asked.append(key) or ask(self, key))  # type: ignore[func-returns-value]
        assert numbers(frame, list(frame.columns), low=0, high=1).shape == (5, 40)
        assert surely_numbers(frame, list(frame.columns))
        assert len(asked) == 2

    def test_long_columns_are_not_copied_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        frame = pd.DataFrame(np.ones((9, 40)), columns=[f"c{place}" for place in range(40)])
        monkeypatch.setattr("competitions.scoring.cells._MIN_LONG_ROWS", 9)
        assert not surely_numbers(frame, list(frame.columns))
        assert numbers(frame, list(frame.columns)).shape == (9, 40)


class TestProbabilities:
    def test_range(self) -> None:
        assert probabilities(column("True", "False"), "c").tolist() == [1, 0]
        for cell in ("inf", "1.0000001", "-1e-9", "", "text"):
            rejects(probabilities, column("0.5", cell), "c", hint="`c`")

    @pytest.mark.parametrize("off", [0, 1.05e-5, -1.05e-5])
    def test_rows_sum_to_one_within_tolerance(self, off: float) -> None:
        frame = pd.DataFrame({"a": [0.25, 0.5], "b": [0.75, 0.5 + off]})
        assert probability_rows(frame, ["a", "b"]).shape == (2, 2)

    def test_other_sums_are_rejected(self) -> None:
        frame = pd.DataFrame({"a": [0.25, 0.5], "b": [0.75, 0.5 + 1.2e-5]})
        rejects(probability_rows, frame, ["a", "b"], hint="found 1 row with another sum, such as 1.000012")

    def test_rounded_sums(self) -> None:
        require_row_sums(np.array([[0.5, 0.5 + 4e-7]]), decimals=6)
        rejects(require_row_sums, np.array([[0.5, 0.5 + 6e-7]]), decimals=6, hint="sum to 1")
        require_row_sums(np.array([[1.0, np.nan]]), decimals=5)


class TestWholeNumbers:
    @pytest.mark.parametrize(
        ("cells", "values"), [(("1", "-2"), [1, -2]), (("1.0", "3.0"), [1, 3]), (("True", "False"), [1, 0])]
    )
    def test_pass(self, cells: tuple[str, str], values: list[int]) -> None:
        assert whole_numbers(column(*cells), "c").tolist() == values

    @pytest.mark.parametrize("cell", ["0.5", "", "inf", "text", "1e300", "-9.3e18", "99999999999999999999"])
    def test_rejected(self, cell: str) -> None:
        rejects(whole_numbers, column("1", cell), "c", hint="`c`")


class TestIntegers:
    @pytest.mark.parametrize(
        ("cells", "values"),
        [
            (("1", "-2"), [1, -2]),
            (("1.9", "-0.5"), [1, 0]),
            (("True", "False"), [1, 0]),
        ],
    )
    def test_are_cut_towards_zero(self, cells: tuple[str, str], values: list[int]) -> None:
        assert integers(column(*cells), "c").tolist() == values

    def test_text_goes_through_int(self) -> None:
        assert integers(pd.DataFrame({"c": [" 7 ", "+1", "1_0", "007"]}), "c").tolist() == [7, 1, 10, 7]

    @pytest.mark.parametrize("cell", ["", "inf", "oak", "12 7", "1e300", "-9" + 18 * "9", "9" * 30, str(2**63)])
    def test_rejected(self, cell: str) -> None:
        rejects(integers, column("1", cell), "c", hint="`c`")


class TestLabels:
    """The outcomes of scikit-learn 1.5's accuracy_score."""

    MANY, TWO = [0, 1, 2], [True, False, True]

    @pytest.mark.parametrize("cells", [("0", "1", "9"), ("0.0", "1.0", "2.0"), ("True", "False", "True")])
    def test_numbers_pass_by_value(self, cells: tuple[str, str, str]) -> None:
        for truth in (self.MANY, self.TWO):
            assert (
                labels(column(*cells), "c", truth).tolist()
                == pd.read_csv(io.StringIO("c\n" + "\n".join(cells)))["c"].tolist()
            )

    @pytest.mark.parametrize("cell", ["0.5", "", "inf", "NA"])
    def test_fractions_gaps_and_infinities_are_rejected(self, cell: str) -> None:
        for other in ("1", "a"):
            if other == "a" and cell in ("0.5", "inf"):
                continue  # these are text, then
            rejects(labels, column(other, "0", cell), "c", self.MANY, hint="`c`")

    def test_text_beside_numbers_passes_unless_both_have_two_values(self) -> None:
        assert labels(column("1", "0", "x"), "c", self.MANY).tolist() == ["1", "0", "x"]
        assert labels(column("x", "y", "x"), "c", self.MANY).tolist() == ["x", "y", "x"]
        assert labels(column("x", "y", "z"), "c", self.TWO).tolist() == ["x", "y", "z"]
        rejects(labels, column("x", "y", "x"), "c", self.TWO, hint="true or false")
        rejects(labels, column("1", "0", "x"), "c", self.MANY, strict=True, hint="whole numbers")

    def test_text_truth(self) -> None:
        truth = np.array(["a", "b", "c"], dtype=object)
        assert labels(column("a", "z", "a"), "c", truth).tolist() == ["a", "z", "a"]
        assert labels(column("1", "2", "2"), "c", truth).tolist() == [1, 2, 2]
        rejects(labels, column("1", "2", "2"), "c", truth, strict=True, hint="text")
        rejects(labels, column("True", "False", ""), "c", truth, hint="1 empty cell")


class TestTexts:
    def test_missing(self) -> None:
        assert texts(column("a", "", "7.0"), "c", missing="") == ["a", "", "7.0"]
        rejects(texts, column("a", "", "NA"), "c", hint="2 empty cells")

    def test_numeric_columns_are_rejected(self) -> None:
        for cells in (("1", "2"), ("1.5", ""), ("True", "False"), ("True", "")):
            rejects(texts, column(*cells), "c", missing="", hint="must hold text")

    def test_an_empty_column_is_empty_text(self) -> None:
        assert texts(column("", ""), "c", missing="") == ["", ""]

    def test_as_text_spells_as_pandas(self) -> None:
        for cells in (
            ("1", "2"),
            ("1", ""),
            ("True", "False"),
            ("a", ""),
            ("0.1", "1e-5"),
            ("1e22", "3"),
            ("True", ""),
        ):
            frame = column(*cells)
            assert as_text(frame, "c") == frame["c"].astype(str).tolist()


class TestChoices:
    def test_every_cell_is_one_of_the_classes(self) -> None:
        assert choices(column("b", "a", "b"), "c", ("a", "b")) == ["b", "a", "b"]
        rejects(choices, column("a", "B"), "c", ("a", "b"), hint="'B', not one of the 2 classes")
        rejects(choices, column("a", ""), "c", ("a", "b"), hint="1 empty cell")
        rejects(choices, column("1", "2"), "c", ("a", "b"), hint="must hold text")


class TestRequireNumeric:
    @pytest.mark.parametrize("cells", [("1", "2"), ("1.5", ""), ("inf", "nan")])
    def test_numeric_types_pass(self, cells: tuple[str, ...]) -> None:
        require_numeric(column(*cells), "c", booleans=False)

    @pytest.mark.parametrize("cells", [("a", "2"), ("True", ""), ("1", "1" * 30)])
    def test_other_types_are_rejected(self, cells: tuple[str, ...]) -> None:
        rejects(require_numeric, column(*cells), "c", hint="`c` must hold numbers")

    def test_booleans_may_count_as_numbers(self) -> None:
        require_numeric(column("True", "False"), "c")
        rejects(require_numeric, column("True", "False"), "c", booleans=False, hint="`c` must hold numbers")


MATRIX = pd.DataFrame({"id": [1, 2, 3], "a": [0, 1, 0], "b": [0.5, 0.25, 1.0], "c": [True, False, True]})


class TestSeveralColumns:
    """They are one matrix, with the verdict and the message of each column alone."""

    def test_are_a_matrix_of_floats(self) -> None:
        found = numbers(MATRIX, ["b", "a", "c"], low=0, high=1)
        assert found.dtype == np.float64
        assert found.tolist() == [[0.5, 0, 1], [0.25, 1, 0], [1.0, 0, 1]]
        assert numbers(MATRIX[:0], ["a", "b"]).shape == (0, 2)
        assert numbers(MATRIX, []).shape == (3, 0)

    def test_are_a_copy(self) -> None:
        numbers(MATRIX, ["a", "b"])[:] = 7
        assert MATRIX["b"].tolist() == [0.5, 0.25, 1.0]

    @pytest.mark.parametrize("place", ["a", "b", "c"])
    @pytest.mark.parametrize(
        "wrong",
        [[0.5, np.nan, 0.5], [0.5, np.inf, 0.5], [0.5, -np.inf, 0.5], [0.5, 1.5, 0.5], [-1, 0, 1], ["x", "1", "0"]],
    )
    @pytest.mark.parametrize("options", [{}, {"low": 0, "high": 1}, {"missing": True}, {"infinite": True}])
    def test_are_judged_as_each_alone(self, place: str, wrong: list[Any], options: dict[str, Any]) -> None:
        frame = MATRIX.assign(**{place: wrong})

        def verdict(columns: str | list[str]) -> Any:
            try:
                return numbers(frame, columns, **options).reshape(len(frame), -1)[:, -1].tolist()
            except InvalidSubmission as error:
                return str(error)

        columns = [each for each in "abc" if each != place]
        assert str(verdict([*columns, place])) == str(verdict(place))


@pytest.mark.parametrize(
    "cell", ["0.5e686274509804", "0.5e-686274509804x", "1e99999999999", "1_0e-9999", "1e9999", "e9999"]
)
def test_an_exponent_of_many_digits_is_refused_and_crashes_nothing(cell: str) -> None:
    """pandas reads memory that is not its own for some, and the process ends."""
    for cells in ([cell, "x"], [cell, "1.5"]):
        with pytest.raises(InvalidSubmission, match=f"must hold numbers; it has .*: '{cell}'"):
            numbers(pd.DataFrame({"p": pd.Series(cells, dtype=object)}), "p")


def test_an_exponent_of_many_digits_that_makes_zero_is_zero() -> None:
    table = pd.DataFrame({"p": pd.Series(["1e-99999999", " 1e-0001", "1.5", None], dtype=object)})
    assert numbers(table, "p", missing=True)[:3].tolist() == [0.0, 0.1, 1.5]
