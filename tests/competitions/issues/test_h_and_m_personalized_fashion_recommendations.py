"""Probes of H&M Personalized Fashion Recommendations."""

from __future__ import annotations

import io

import pandas as pd

from tests.competitions.issues._probe import (
    World,
    remade,
    table_bytes,
)


def padded(world: World) -> pd.DataFrame:
    """The articles that were bought, with the ids of articles.csv and of the sample submission."""
    lists = world.perfect["prediction"].str.split()
    bought = world.perfect.assign(prediction=[" ".join(article.zfill(10) for article in row) for row in lists])
    others = world.sample[~world.sample["customer_id"].isin(bought["customer_id"])]
    return pd.concat([bought, others], ignore_index=True)


def test_leading_zeros_lost(v1: World, v2: World) -> None:
    """The ids of articles.csv match nothing, so a right prediction in their spelling is worth nothing."""
    assert set(" ".join(padded(v1)["prediction"]).split()) & set(v1.table("articles.csv", dtype=str)["article_id"])
    assert v1.grade(padded(v1)) < 0.05  # a few articles have no zero to lose
    assert v2.grade(padded(v2)) > 0.9


def test_eight_day_window(v1: World, v2: World) -> None:
    """The competition asks for a week."""
    last = pd.to_datetime(v1.kaggle.read_csv("transactions_train.csv")["t_dat"]).max()

    def days(world: World) -> int:
        known = pd.to_datetime(world.table("transactions_train.csv")["t_dat"])
        return (last - known.max()).days

    assert (days(v1), days(v2)) == (8, 7)


def test_sample_scores_zero(v1: World, v2: World) -> None:
    """The articles of the sample submission count as bought by nobody, although a customer buys the first of them."""
    article = v1.sample["prediction"][0].split()[0]

    def bought(content: bytes) -> bytes:
        table = pd.read_csv(io.BytesIO(content), dtype=str)
        last = table["t_dat"].max()
        return table_bytes(table.assign(article_id=table["article_id"].where(table["t_dat"] != last, article)))

    worlds = remade(v1, {"transactions_train.csv": bought})
    assert worlds["v1"].grade(worlds["v1"].sample) == 0
    assert worlds["v2"].grade(worlds["v2"].sample) > 0


def test_repeated_customers(v1: World, v2: World) -> None:
    """A customer given twice passes, and everybody after her gets another one's articles."""
    right = pd.concat([v1.perfect, v1.sample]).drop_duplicates("customer_id")
    twice = pd.concat([right[:1], right])
    assert v1.grade(twice) < v1.grade(right)
    assert "rows" in v2.refusal(twice)


def test_buyers_revealed(v1: World, v2: World) -> None:
    """The validation service tells who buys something in the test week: only these customers must not be left out."""

    def buyers(world: World) -> set[str]:
        customers = world.sample["customer_id"]
        return {one for row, one in enumerate(customers) if world.refusal(world.sample.drop(index=row))}

    true = set(v1.truth["customer_id"])
    assert buyers(v1) == true != set(v1.sample["customer_id"])
    assert buyers(v2) == set(v2.sample["customer_id"])
