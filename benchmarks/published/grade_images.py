"""Answers and submissions of objects and masks in images and scans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.published.answers import Generator, case, mixed, write
from benchmarks.published.common import ellipse_runs, hexes


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
        is_kept = rng.random(k) < 0.93
        guess.append(
            " ".join(
                f"{characters[c]} {a:.2f} {b:.2f}"
                for c, a, b in zip(seen[is_kept], cx[is_kept], cy[is_kept], strict=True)
            )
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
        is_kept = rng.random(k) < 0.9
        boxes = np.vstack([noise[is_kept], false])
        called = np.concatenate([name[is_kept], rng.choice(classes, m, p=share / share.sum())])
        confidence = np.concatenate([rng.uniform(0.4, 1, int(is_kept.sum())), rng.uniform(0, 0.6, m)]).tolist()
        guess.append(text([repr(v) for v in confidence], boxes.tolist(), called))
    write(pd.DataFrame({"Id": ids, "PredictionString": truth}), private / "test.csv", public, "")
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
    write(pd.DataFrame({"id": ids, "rle_mask": truth}), private / "test.csv", public, "1 1")
    return mixed(pd.DataFrame({"id": ids, "rle_mask": guess}), rng)


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
    write(pd.DataFrame(rows, columns=columns), private / "test.csv", public, "none 1 0 0 1 1")
    return mixed(pd.DataFrame(guess, columns=columns), rng)
