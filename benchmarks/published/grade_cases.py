"""Prepared directories with answers of realistic size, written directly, and a noisy submission for each.

Only what a grader reads is there: the answers, the sample submission and, where there is one, the gold submission.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.published.common import ellipse_runs, hexes, texts
from benchmarks.published.prepare_cases import question
from competitions import registry

Generator = np.random.Generator
GENERATORS: dict[str, Callable] = {}


def case(competition: str) -> Callable:
    """Register a generator f(public, private, rng, scale) -> submission (or a list of them)."""

    def register(function: Callable) -> Callable:
        GENERATORS[competition] = function
        return function

    return register


def mixed(table: pd.DataFrame, rng: Generator) -> pd.DataFrame:
    """The rows in random order: submissions need not keep the order of the answers."""
    return table.iloc[rng.permutation(len(table))]


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


@case("kuzushiji-recognition")
def kuzushiji(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    n = int(361 * scale)
    characters = [f"U+{v:04X}" for v in rng.choice(np.arange(0x3040, 0x9FFF), 1500, replace=False)]
    weight = 1 / np.arange(1, 1501)
    ids = [f"{100241706 + 7 * i}_{i:05d}_{i % 2 + 1}" for i in range(n)]
    truth, gold, guess = [], [], []
    for k in np.clip(rng.normal(190, 80, n), 10, 600).astype(int):
        label = rng.choice(1500, k, p=weight / weight.sum())
        x, y = rng.integers(0, 2300, k), rng.integers(0, 3300, k)
        w, h = rng.integers(25, 140, k), rng.integers(25, 140, k)
        truth.append(
            " ".join(f"{characters[c]} {a} {b} {p} {q}" for c, a, b, p, q in zip(label, x, y, w, h, strict=True))
        )
        gold.append(
            " ".join(
                f"{characters[c]} {a + p // 2} {b + q // 2}" for c, a, b, p, q in zip(label, x, y, w, h, strict=True)
            )
        )
        seen = np.where(rng.random(k) < 0.08, rng.integers(0, 1500, k), label)
        cx, cy = x + w / 2 + rng.normal(0, 18, k), y + h / 2 + rng.normal(0, 18, k)
        kept = rng.random(k) < 0.93
        guess.append(
            " ".join(f"{characters[c]} {a:.2f} {b:.2f}" for c, a, b in zip(seen[kept], cx[kept], cy[kept], strict=True))
        )
    pd.DataFrame({"image_id": ids, "labels": truth}).to_csv(private / "test.csv", index=False)
    pd.DataFrame({"image_id": ids, "labels": gold}).to_csv(private / "gold_submission.csv", index=False)
    pd.DataFrame({"image_id": ids, "labels": "U+003F 1 1 U+FF2F 2 2"}).to_csv(
        public / "sample_submission.csv", index=False
    )
    return mixed(pd.DataFrame({"image_id": ids, "labels": guess}), rng)


@case("vinbigdata-chest-xray-abnormalities-detection")
def vinbigdata(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    names = [
        "Aortic enlargement",
        "Atelectasis",
        "Calcification",
        "Cardiomegaly",
        "Consolidation",
        "ILD",
        "Infiltration",
        "Lung Opacity",
        "Nodule/Mass",
        "Other lesion",
        "Pleural effusion",
        "Pleural thickening",
        "Pneumothorax",
        "Pulmonary fibrosis",
        "No finding",
    ]
    n = int(1500 * scale)
    rows, guess = [], []
    for image in sorted(hexes(rng, n, 32)):
        classes = (
            [14] if rng.random() < 0.7 else sorted(rng.choice(14, int(rng.integers(1, 7)), replace=False).tolist())
        )
        parts = []
        for c in classes:
            x, y = rng.integers(50, 1600, 2).tolist()
            w, h = rng.integers(60, 900, 2).tolist()
            box = [0.0, 0.0, 1.0, 1.0] if c == 14 else [float(x), float(y), float(x + w), float(y + h)]
            rows.append([image, c, names[c], f"R{int(rng.integers(1, 18))}", *box])
            if rng.random() < 0.85:
                seen = (
                    box
                    if c == 14
                    else [v + s * d for v, s, d in zip(box, (w, h, w, h), rng.normal(0, 0.1, 4), strict=True)]
                )
                parts.append((c, rng.uniform(0.3, 1), seen))
        for _ in range(int(rng.poisson(38)) + 1):  # detectors list everything they have, with low confidence
            x, y = rng.uniform(50, 1600, 2)
            w, h = rng.uniform(60, 900, 2)
            parts.append((int(rng.integers(0, 14)), rng.beta(1, 5), [x, y, x + w, y + h]))
        guess.append((image, " ".join(f"{c} {p:.4f} " + " ".join(f"{v:.2f}" for v in b) for c, p, b in parts)))
    columns = ["image_id", "class_id", "class_name", "rad_id", "x_min", "y_min", "x_max", "y_max"]
    answers = pd.DataFrame(rows, columns=columns)
    answers.to_csv(private / "answers.csv", index=False)
    boxes = answers.astype(dict.fromkeys(columns[4:], str))[columns[4:]].agg(" ".join, axis=1)
    gold = answers["class_id"].astype(str) + " 1.0 " + boxes
    gold.groupby(answers["image_id"]).agg(" ".join).to_frame("PredictionString").reset_index().to_csv(
        private / "gold_submission.csv", index=False
    )
    frame = mixed(pd.DataFrame(guess, columns=["image_id", "PredictionString"]), rng)
    frame.assign(PredictionString="14 1 0 0 1 1").to_csv(public / "sample_submission.csv", index=False)
    return frame


@case("3d-object-detection-for-autonomous-vehicles")
def boxes_3d(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    classes = np.array(["car", "other_vehicle", "bus", "pedestrian", "truck", "bicycle", "motorcycle", "animal"])
    share = np.array([0.83, 0.05, 0.015, 0.04, 0.025, 0.034, 0.003, 0.003])
    n = int(900 * scale)
    ids = hexes(rng, n, 64)

    def text(confidence: Sequence[str], boxes: list[list[float]], names: Iterable[str]) -> str:
        return " ".join(
            f"{p} " + " ".join(map(repr, b)) + f" {c}" for p, b, c in zip(confidence, boxes, names, strict=True)
        )

    truth, guess = [], []
    for _ in range(n):
        k = int(np.clip(rng.normal(28, 12), 2, 80))
        centre = np.column_stack(
            [2000 + rng.uniform(-50, 50, k), 900 + rng.uniform(-50, 50, k), -20 + rng.normal(0, 0.5, k)]
        )
        size = rng.uniform([1.6, 3.8, 1.4], [2.4, 6.0, 2.2], (k, 3)).round(3)
        yaw = rng.uniform(-np.pi, np.pi, (k, 1))
        name = rng.choice(classes, k, p=share / share.sum())
        truth.append(text(["1.0"] * k, np.hstack([centre, size, yaw]).tolist(), name))
        noise = np.hstack(
            [centre + rng.normal(0, 0.2, (k, 3)), size * rng.normal(1, 0.05, (k, 3)), yaw + rng.normal(0, 0.05, (k, 1))]
        )
        m = int(rng.poisson(6))
        false = np.column_stack(
            [
                2000 + rng.uniform(-50, 50, m),
                900 + rng.uniform(-50, 50, m),
                np.full(m, -20.0),
                rng.uniform(1, 4, (m, 3)),
                rng.uniform(-3, 3, m),
            ]
        )
        kept = rng.random(k) < 0.9
        boxes = np.vstack([noise[kept], false])
        called = np.concatenate([name[kept], rng.choice(classes, m, p=share / share.sum())])
        confidence = np.concatenate([rng.uniform(0.4, 1, int(kept.sum())), rng.uniform(0, 0.6, m)]).tolist()
        guess.append(text([repr(v) for v in confidence], boxes.tolist(), called))
    pd.DataFrame({"Id": ids, "PredictionString": truth}).to_csv(private / "test.csv", index=False)
    pd.DataFrame({"Id": ids, "PredictionString": ""}).to_csv(public / "sample_submission.csv", index=False)
    return mixed(pd.DataFrame({"Id": ids, "PredictionString": guess}), rng)


@case("uw-madison-gi-tract-image-segmentation")
def uw_madison(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    height = width = 266
    rows = []
    for day in range(max(1, int(45 * scale))):
        # an organ is an ellipsoid; the prediction is shifted, scaled and here and there missing
        organs = {}
        for organ in ("large_bowel", "small_bowel", "stomach"):
            centre = np.array([rng.uniform(60, 90), rng.uniform(90, 170), rng.uniform(80, 180)])
            radius = np.array([rng.uniform(15, 40), rng.uniform(12, 32), rng.uniform(12, 32)])
            organs[organ] = centre, radius, centre + rng.normal(0, 2.5, 3), radius * rng.normal(1, 0.06, 3)
        for s in range(144):
            for organ, (centre, radius, seen, extent) in organs.items():
                texts_ = []
                for c, r in ((centre, radius), (seen, extent)):
                    inside = 1 - ((s - c[0]) / r[0]) ** 2
                    factor = np.sqrt(inside) if inside > 0 else 0
                    texts_.append(
                        ellipse_runs(height, width, c[1], c[2], r[1] * factor, r[2] * factor) if factor > 0.05 else ""
                    )
                rows.append(
                    [
                        f"case{100 + day // 3}_day{day % 3 * 10}_slice_{s + 1:04d}",
                        organ,
                        texts_[0],
                        266.0,
                        266.0,
                        texts_[1],
                    ]
                )
    table = pd.DataFrame(rows, columns=["id", "class", "predicted", "image_width", "image_height", "seen"])
    table.drop(columns="seen").to_csv(private / "test.csv", index=False, na_rep="")
    table[["id", "class"]].to_csv(public / "test.csv", index=False)
    table[["id", "class"]].assign(predicted="1 1 5 2").to_csv(public / "sample_submission.csv", index=False)
    return table[["id", "class", "seen"]].rename(columns={"seen": "predicted"})


@case("tgs-salt-identification-challenge")
def salt(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    n = int(1000 * scale)
    truth, guess = [], []
    for _ in range(n):
        if rng.random() < 0.39:
            truth.append("")
            guess.append("" if rng.random() < 0.9 else "5 40")
            continue
        centre, radius = rng.uniform(0, 101, 2), rng.uniform(10, 60, 2)
        truth.append(ellipse_runs(101, 101, *centre, *radius))
        guess.append(ellipse_runs(101, 101, *(centre + rng.normal(0, 4, 2)), *(radius * rng.normal(1, 0.1, 2))))
    ids = hexes(rng, n, 10)
    pd.DataFrame({"id": ids, "rle_mask": truth}).to_csv(private / "test.csv", index=False)
    pd.DataFrame({"id": ids, "rle_mask": "1 1"}).to_csv(public / "sample_submission.csv", index=False)
    return mixed(pd.DataFrame({"id": ids, "rle_mask": guess}), rng)


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
    pd.DataFrame(gold, columns=columns).to_csv(private / "gold_submission.csv", index=False)
    pd.DataFrame(gold, columns=columns).assign(PredictionString="").to_csv(
        public / "sample_submission.csv", index=False
    )
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


@case("siim-covid19-detection")
def covid(public: Path, private: Path, rng: Generator, scale: float) -> pd.DataFrame:
    labels = ["negative", "typical", "indeterminate", "atypical"]
    n, m = int(606 * scale), int(634 * scale)
    ids = hexes(rng, n + m, 12)
    rows, guess = [], []
    for i in ids[:n]:
        truth = labels[int(rng.choice(4, p=[0.28, 0.47, 0.17, 0.08]))]
        rows.append((i + "_study", f"{truth} 1 0 0 1 1"))
        guess.append(
            (i + "_study", " ".join(f"{c} {rng.random() * 0.6 + 0.4 * (c == truth):.4f} 0 0 1 1" for c in labels))
        )
    for i in ids[n:]:
        boxes = rng.uniform(100, 1200, (int(rng.integers(1, 3)) if rng.random() < 0.7 else 0, 4)).round(5).tolist()
        rows.append(
            (i + "_image", " ".join(f"opacity 1 {x} {y} {x + w} {y + h}" for x, y, w, h in boxes) or "none 1 0 0 1 1")
        )
        seen = [[v + rng.normal(0, 60) for v in box] for box in boxes if rng.random() < 0.85] + rng.uniform(
            100, 1200, (int(rng.poisson(3)), 4)
        ).tolist()
        guess.append(
            (
                i + "_image",
                " ".join(
                    [f"none {rng.random():.3f} 0 0 1 1"]
                    + [f"opacity {rng.random():.4f} {x:.2f} {y:.2f} {x + w:.2f} {y + h:.2f}" for x, y, w, h in seen]
                ),
            )
        )
    columns = ["id", "PredictionString"]
    pd.DataFrame(rows, columns=columns).to_csv(private / "test.csv", index=False)
    pd.DataFrame(rows, columns=columns).assign(PredictionString="none 1 0 0 1 1").to_csv(
        public / "sample_submission.csv", index=False
    )
    return mixed(pd.DataFrame(guess, columns=columns), rng)


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
    pd.DataFrame({"image_id": ids, "InChI": truth}).to_csv(private / "test.csv", index=False)
    pd.DataFrame({"image_id": ids, "InChI": "InChI=1S/H2O/h1H2"}).to_csv(public / "sample_submission.csv", index=False)
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


def make(competition: str, root: Path, rng: Generator, scale: float) -> None:
    """Write root/prepared/{public,private} and root/submissions/NNN.csv."""
    public, private = root / "prepared" / "public", root / "prepared" / "private"
    for folder in (public, private, root / "submissions"):
        folder.mkdir(parents=True)
    made = GENERATORS[competition](public, private, rng, scale)
    for k, table in enumerate(made if isinstance(made, list) else [made]):
        table.to_csv(root / "submissions" / f"{k:03d}.csv", index=False)
