"""Answers and submissions of tables and texts."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.published.answers import Generator, case, mixed, write
from benchmarks.published.common import hexes, texts
from benchmarks.published.prepare_cases import question
from competitions import registry


@case("dog-breed-identification")
def dogs(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    breeds = json.loads((registry.get("dog-breed-identification").folder / "classes.json").read_text())
    n = int(1023 * scale)
    ids = hexes(rng, n, 32)
    truth = np.concatenate([np.arange(len(breeds)), rng.integers(0, len(breeds), max(0, n - len(breeds)))])[:n]
    answers = pd.DataFrame(np.eye(len(breeds), dtype=int)[truth], columns=breeds)
    answers.insert(0, "id", ids)
    answers.to_csv(private / "test.csv", index=False)
    logits = rng.normal(0, 1.5, (n, len(breeds)))
    logits[np.arange(n), truth] += 4
    p = np.exp(logits)
    guess = pd.DataFrame(p / p.sum(axis=1, keepdims=True), columns=breeds)
    guess.insert(0, "id", ids)
    guess.assign(**dict.fromkeys(breeds, 1 / len(breeds))).to_csv(public / "sample_submission.csv", index=False)
    return mixed(guess, rng)


@case("jigsaw-unintended-bias-in-toxicity-classification")
def jigsaw_bias(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    identities = [
        "male",
        "female",
        "transgender",
        "other_gender",
        "heterosexual",
        "homosexual_gay_or_lesbian",
        "bisexual",
        "other_sexual_orientation",
        "christian",
        "jewish",
        "muslim",
        "hindu",
        "buddhist",
        "atheist",
        "other_religion",
        "black",
        "white",
        "asian",
        "latino",
        "other_race_or_ethnicity",
        "physical_disability",
        "intellectual_or_learning_disability",
        "psychiatric_or_mental_illness",
        "other_disability",
    ]
    n = int(97320 * scale)
    toxicity = rng.choice([0.0, 1 / 6, 0.4, 0.5, 2 / 3, 1.0], n, p=[0.6, 0.2, 0.12, 0.03, 0.03, 0.02])
    table: dict[str, object] = {
        "id": 7000000 + rng.permutation(2 * n)[:n],
        "comment_text": texts(rng, n, 50),
        "created_date": "2017-01-01 00:00:00.000001+00",
        "publication_id": rng.integers(1, 60, n),
        "parent_id": np.where(rng.random(n) < 0.5, np.nan, rng.integers(1, 10**6, n)),
        "article_id": rng.integers(1000, 400000, n),
        "rating": rng.choice(["approved", "rejected"], n),
    }
    for c in ["funny", "wow", "sad", "likes", "disagree"]:
        table[c] = rng.integers(0, 4, n)
    table["toxicity"] = toxicity
    for c in ["severe_toxicity", "obscene", "sexual_explicit", "identity_attack", "insult", "threat"]:
        table[c] = (rng.integers(0, 7, n) / 6) * (toxicity > 0)
    for c in identities:
        table[c] = np.where(rng.random(n) < 0.94, 0.0, rng.choice([0.25, 0.5, 2 / 3, 1.0], n))
    table["identity_annotator_count"] = rng.integers(0, 11, n)
    table["toxicity_annotator_count"] = rng.integers(4, 80, n)
    answers = pd.DataFrame(table)
    answers.to_csv(private / "test.csv", index=False)
    guess = answers[["id"]].assign(prediction=np.clip(0.15 + 0.55 * (toxicity >= 0.5) + rng.normal(0, 0.2, n), 0, 1))
    guess.assign(prediction=0.0).to_csv(public / "sample_submission.csv", index=False)
    return mixed(guess, rng)


@case("AI4Code")
def ai4code(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    n = int(20000 * scale)
    lengths = np.clip(rng.lognormal(3.5, 0.8, n), 2, 1000).astype(int)
    pool = hexes(rng, int(lengths.sum()), 8)
    ids = hexes(rng, n, 14)
    truth, guess, start, at = [], [], [], 0
    for k in lengths.tolist():
        cells = pool[at : at + k]
        at += k
        order = np.argsort(np.arange(k) + rng.normal(0, 0.12 * k + 1, k))
        truth.append(" ".join(cells))
        guess.append(" ".join(cells[i] for i in order))
        start.append(" ".join(sorted(cells)))
    pd.DataFrame({"id": ids, "cell_order": truth}).to_csv(private / "test_orders.csv", index=False)
    pd.DataFrame({"id": ids, "cell_order": start}).to_csv(public / "sample_submission.csv", index=False)
    return mixed(pd.DataFrame({"id": ids, "cell_order": guess}), rng)


@case("tensorflow2-question-answering")
def questions(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    n = int(30738 * scale)
    passages = texts(rng, 1500, 280)
    gold, guess, lines = [], [], []
    for k, number in enumerate(rng.integers(-(1 << 63), 1 << 62, n).tolist()):
        line = question(rng, k, " ".join(passages[int(i)] for i in rng.integers(0, len(passages), 4)), str(number))
        lines.append(json.dumps(line, separators=(",", ":")))
        note = line["annotations"][0]
        short, long = "", ""
        if note["yes_no_answer"] != "NONE":
            short = note["yes_no_answer"]
        elif note["short_answers"]:
            short = "{start_token}:{end_token}".format(**note["short_answers"][0])
        if note["long_answer"]["start_token"] != -1:
            long = "{start_token}:{end_token}".format(**note["long_answer"])
        for kind, text in (("short", short), ("long", long)):
            gold.append((f"{number}_{kind}", text))
            u = rng.random()
            guess.append(
                (f"{number}_{kind}", "" if u < 0.2 else f"{int(u * 900)}:{int(u * 999) + 9}" if u < 0.4 else text)
            )
    (private / "test.jsonl").write_text("\n".join(lines) + "\n")
    columns = ["example_id", "PredictionString"]
    write(pd.DataFrame(gold, columns=columns), private / "gold_submission.csv", public, "")
    return mixed(pd.DataFrame(guess, columns=columns), rng)


@case("champs-scalar-coupling")
def champs(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    types = np.array(["1JHC", "2JHH", "1JHN", "2JHN", "2JHC", "3JHH", "3JHC", "3JHN"])
    n = int(466000 * scale)
    kind = rng.choice(8, n, p=[0.15, 0.08, 0.01, 0.03, 0.24, 0.13, 0.32, 0.04])
    value = (rng.normal(0, 10, n) + 90 * (kind == 0)).round(6)
    answers = pd.DataFrame(
        {
            "id": np.sort(rng.choice(10 * n, n, replace=False)),
            "molecule_name": [f"dsgdb9nsd_{v:06d}" for v in np.sort(rng.integers(1, 133885, n))],
            "atom_index_0": rng.integers(0, 27, n),
            "atom_index_1": rng.integers(0, 27, n),
            "type": types[kind],
            "scalar_coupling_constant": value,
        }
    )
    answers.to_csv(private / "answers.csv", index=False)
    guess = answers[["id"]].assign(scalar_coupling_constant=value + rng.normal(0, 0.5, n) * (1 + kind))
    guess.assign(scalar_coupling_constant=0).to_csv(public / "sample_submission.csv", index=False)
    return mixed(guess, rng)


@case("h-and-m-personalized-fashion-recommendations")
def fashion(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    n, scored = int(1_371_980 * scale), int(68_984 * scale)
    articles = np.unique(rng.integers(108775015, 959461002, 105542)).astype(str).astype(object)
    weight = 1 / np.arange(1, len(articles) + 1) ** 0.8
    popular = rng.choice(len(articles), 400_000, p=weight / weight.sum())
    lists = [
        " ".join("0" + a for a in articles[popular[i : i + 12]]) for i in rng.integers(0, len(popular) - 12, 40_000)
    ]
    customers = np.array(sorted(hexes(rng, n, 64)), dtype=object)
    mine = np.sort(rng.choice(n, scored, replace=False))
    guess = np.array(lists, dtype=object)[rng.integers(0, len(lists), n)]
    truth = []
    for row, k in zip(mine.tolist(), (1 + rng.geometric(0.3, scored)).tolist(), strict=True):
        bought = articles[popular[rng.integers(0, len(popular), k)]]
        truth.append(" ".join(bought))
        if rng.random() < 0.3:  # graders compare text, and answers have no leading zeros
            guess[row] = " ".join([*articles[popular[rng.integers(0, len(popular), 5)]], *bought[:3]])
    pd.DataFrame({"customer_id": customers[mine], "prediction": truth}).to_csv(private / "answers.csv", index=False)
    pd.DataFrame({"customer_id": customers, "prediction": lists[0]}).to_csv(
        public / "sample_submission.csv", index=False
    )
    return mixed(pd.DataFrame({"customer_id": customers, "prediction": guess}), rng)


@case("text-normalization-challenge-english-language")
def normalisation(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    n = int(993465 * scale)
    lengths = rng.integers(3, 24, n // 6)
    sentence = np.repeat(np.arange(len(lengths)), lengths)[:n]
    token = np.arange(len(sentence)) - (np.cumsum(lengths) - lengths)[sentence]
    words = np.array(
        [w for t in texts(rng, 500, 60) for w in t.split()]
        + [".", ",", '"', "two thousand six", "one hundred forty five"] * 2500,
        dtype=object,
    )
    truth = words[rng.integers(0, len(words), len(sentence))]
    answers = pd.DataFrame(
        {"id": [f"{s}_{t}" for s, t in zip(sentence.tolist(), token.tolist(), strict=True)], "after": truth}
    )
    answers.to_csv(private / "answers.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    answers.to_csv(private / "sample_submission.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    wrong = rng.random(len(answers)) < 0.05
    return mixed(answers.assign(after=np.where(wrong, words[rng.integers(0, len(words), len(answers))], truth)), rng)


@case("bms-molecular-translation")
def molecules(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    n = int(484838 * scale)
    ids = hexes(rng, n, 12)
    layers = []
    for _ in range(5000):
        k = int(rng.integers(8, 32))
        chain = "-".join(
            str(v) if rng.random() < 0.85 else f"{v}({int(rng.integers(2, k))})"
            for v in rng.permutation(np.arange(1, k + 1))
        )
        hydrogens = ",".join(f"{a}-{a + 1}H{b}" for a, b in rng.integers(2, k, (int(rng.integers(2, 6)), 2)))
        layers.append(
            f"C{k}H{2 * k - 4}N{k % 4 + 1}O{k % 3 + 1}/c{chain}/h{hydrogens}" + ("/t4-,5+/m0/s1" if k % 4 == 0 else "")
        )
    pick = rng.integers(0, len(layers), n)
    truth = [f"InChI=1S/{layers[int(i)]}" for i in pick]
    cut, kind = rng.random(n), rng.random(n)
    guess = []
    for text, c, u in zip(truth, cut.tolist(), kind.tolist(), strict=True):
        at = 9 + int(c * (len(text) - 9))
        guess.append(text if u < 0.4 else text[:at] + "-7" + text[at + 3 :] if u < 0.9 else text[:at])
    write(pd.DataFrame({"image_id": ids, "InChI": truth}), private / "test.csv", public, "InChI=1S/H2O/h1H2")
    return mixed(pd.DataFrame({"image_id": ids, "InChI": guess}), rng)


@case("spaceship-titanic")
def titanic(public: Path, private: Path, rng: Generator, scale: float) -> list[pd.DataFrame]:
    n = 870
    answers = pd.DataFrame(
        {
            "PassengerId": [
                f"{i:04d}_{i % 3 + 1:02d}" for i in np.sort(rng.choice(np.arange(1, 9281), n, replace=False))
            ],
            "HomePlanet": rng.choice(["Earth", "Europa", "Mars"], n),
            "CryoSleep": rng.random(n) < 0.36,
            "Cabin": [f"F/{i}/S" for i in range(n)],
            "Destination": rng.choice(["TRAPPIST-1e", "55 Cancri e"], n),
            "Age": rng.integers(0, 80, n).astype(float),
            "VIP": rng.random(n) < 0.02,
            "RoomService": rng.gamma(0.3, 700, n).round(),
            "Name": [f"Anna Zoë {i}" for i in range(n)],
            "Transported": rng.random(n) < 0.5,
        }
    )
    answers.to_csv(private / "test.csv", index=False)
    answers[["PassengerId"]].assign(Transported=False).to_csv(public / "sample_submission.csv", index=False)
    share = rng.uniform(0.05, 0.5, max(1, int(100 * scale)))
    return [
        mixed(answers[["PassengerId"]].assign(Transported=answers["Transported"] ^ (rng.random(n) < s)), rng)
        for s in share
    ]
