"""Probes of Toxic Comment Classification Challenge."""

from __future__ import annotations

from tests.competitions.issues._probe import World, blanked, cell


def test_column_order_trusted(v1: World, v2: World) -> None:
    """The right probabilities under the right names are wrong in another order."""
    turned = [world.perfect[["id", *world.perfect.columns[:0:-1]]] for world in (v1, v2)]
    assert v1.grade(turned[0]) < 0.9
    assert v2.grade(turned[1]) == v2.grade(v2.perfect) == 1.0


def test_repeated_ids_pass(v1: World, v2: World) -> None:
    """An id twice, in place of another, is a valid file, and the comments between them get each other's labels."""
    first, *_, last = sorted(v1.truth.loc[v1.truth["toxic"] >= 0, "id"])
    twice = v1.perfect.assign(id=v1.perfect["id"].replace(last, first))
    assert v1.grade(twice) < v1.grade(v1.perfect)
    assert "repeated" in v2.refusal(twice)


def test_missing_value_comments(v1: World, v2: World) -> None:
    """A comment such as `null` can be toxic, but it is not shown."""
    original = v1.kaggle.archive("train.csv.zip").read_csv("train.csv", dtype=str, keep_default_na=False)
    comments = original.set_index("id")["comment_text"]

    def lost(world: World) -> int:
        shown = world.table("train.csv", dtype=str, keep_default_na=False)
        return blanked(shown["comment_text"], comments[shown["id"]])

    assert lost(v1) > 0
    assert lost(v2) == 0


def test_unscored_rows_unchecked(v1: World, v2: World) -> None:
    """The validation service tells which comments count: blanks are refused in these, and in no others."""
    true = set(v1.truth.loc[v1.truth["toxic"] >= 0, "id"])

    def counting(world: World) -> set[str]:
        blanks = ((row, cell(world.sample, "toxic", "", position)) for position, row in enumerate(world.sample["id"]))
        return {row for row, blank in blanks if world.refusal(blank)}

    assert counting(v1) == true != set(v1.sample["id"])
    assert counting(v2) == set(v2.sample["id"])
