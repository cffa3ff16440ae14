"""Synthetic downloads of realistic size: each function writes the zip that the data host would serve."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.published.common import Zip, hexes, jpeg, nested, texts

Generator = np.random.Generator


def aerial_cactus_identification(path: Path, rng: Generator, scale: float) -> None:
    ids = [f"{i}.jpg" for i in hexes(rng, int(21500 * scale), 32)]
    n = int(17500 * scale)
    train = pd.DataFrame({"id": ids[:n], "has_cactus": (rng.random(n) < 0.75).astype(int)})
    with Zip(path) as z:
        z.put("train.csv", train.to_csv(index=False))
        z.put("train.zip", nested({f"train/{i}": jpeg(rng, 1200) for i in sorted(ids[:n])}))
        z.put("test.zip", nested({f"test/{i}": jpeg(rng, 1200) for i in sorted(ids[n:])}))
        z.put("sample_submission.csv", pd.DataFrame({"id": ids[n:], "has_cactus": 0.5}).to_csv(index=False))


def histopathologic_cancer_detection(path: Path, rng: Generator, scale: float) -> None:
    n, m = int(15860 * scale), int(4140 * scale)
    ids = hexes(rng, n + m, 40)
    head = bytes([73, 73, 42, 0, 8, 0, 0, 0]) + bytes(200)

    def tif() -> bytes:  # 96 x 96 x 3 with 100 levels: deflate takes some 17 % off, as with the real slides
        return head + (rng.integers(100, 200, 27648, dtype=np.uint8)).tobytes()

    with Zip(path) as z:
        z.put("sample_submission.csv", pd.DataFrame({"id": ids[n:], "label": 0}).to_csv(index=False))
        for i in sorted(ids[n:]):
            z.put(f"test/{i}.tif", tif())
        for i in sorted(ids[:n]):
            z.put(f"train/{i}.tif", tif())
        labels = pd.DataFrame({"id": ids[:n], "label": (rng.random(n) < 0.4).astype(int)})
        z.put("train_labels.csv", labels.to_csv(index=False))


def dogs_vs_cats_redux_kernels_edition(path: Path, rng: Generator, scale: float) -> None:
    n, m = int(12500 * scale), int(12500 * scale)
    train = {f"train/{animal}.{i}.jpg": jpeg(rng, 8000) for animal in ("cat", "dog") for i in range(n)}
    with Zip(path) as z:
        sample = pd.DataFrame({"id": range(1, m + 1), "label": 0.5})
        z.put("sample_submission.csv", sample.to_csv(index=False))
        z.put("test.zip", nested({f"test/{i}.jpg": jpeg(rng, 8000) for i in range(1, m + 1)}))
        z.put("train.zip", nested(train))


def siim_covid19_detection(path: Path, rng: Generator, scale: float) -> None:
    columns = ["Negative for Pneumonia", "Typical Appearance", "Indeterminate Appearance", "Atypical Appearance"]
    n, m = int(6054 * scale), int(1214 * scale)
    studies = hexes(rng, n + m, 12)
    series, images = hexes(rng, 2 * (n + m), 12), hexes(rng, 2 * (n + m), 12)
    kind = rng.choice(4, n, p=[0.28, 0.47, 0.17, 0.08])
    study = pd.DataFrame(np.eye(4, dtype=int)[kind], columns=columns)
    study.insert(0, "id", [s + "_study" for s in studies[:n]])
    rows: list[tuple[str, str | None, str, str]] = []
    files = []
    for k, s in enumerate(studies):
        for j in range(1 + int(rng.random() < 0.046)):
            image = images[2 * k + j]
            files.append(f"{'train' if k < n else 'test'}/{s}/{series[2 * k + j]}/{image}.dcm")
            if k >= n:
                continue
            if kind[k]:
                boxes = rng.uniform(20, 1500, (int(rng.integers(1, 3)), 4)).round(5)
                items = [{"x": float(x), "y": float(y), "width": float(w), "height": float(h)} for x, y, w, h in boxes]
                label = " ".join(f"opacity 1 {x} {y} {x + w} {y + h}" for x, y, w, h in boxes.tolist())
                rows.append((image + "_image", str(items), label, s))
            else:
                rows.append((image + "_image", None, "none 1 0 0 1 1", s))
    level = pd.DataFrame(rows, columns=["id", "boxes", "label", "StudyInstanceUID"]).sort_values("id")
    with Zip(path) as z:
        z.put("sample_submission.csv", "id,PredictionString\n" + f"{studies[-1]}_study,negative 1 0 0 1 1\n")
        for name in sorted(files):
            z.put(name, b"\0" * 128 + b"DICM" + rng.bytes(int(80000 * rng.uniform(0.6, 1.4))))
        z.put("train_image_level.csv", level.to_csv(index=False))
        z.put("train_study_level.csv", study.sort_values("id").to_csv(index=False))


def new_york_city_taxi_fare_prediction(path: Path, rng: Generator, scale: float) -> None:
    n = max(20000, int(1_500_000 * scale))
    start = pd.Timestamp("2009-01-01").value // 10**9
    stamp = pd.to_datetime(rng.integers(0, 6 * 365 * 86400, n) + start, unit="s").strftime("%Y-%m-%d %H:%M:%S")
    fare = (2.5 + rng.gamma(2.0, 4.4, n)).round(1)
    x = (-73.975 + 0.035 * rng.standard_normal((2, n))).round(6)
    y = (40.751 + 0.029 * rng.standard_normal((2, n))).round(6)
    for a in (x, y):  # the real table spells one value in ten with 16 digits and has some zeros
        has_16_digits = rng.random(a.shape) < 0.1
        a[has_16_digits] = np.nextafter(a[has_16_digits], 0)
        a[rng.random(a.shape) < 0.018] = 0
    drop_x = np.where(rng.random(n) < 1e-5, "", x[1].astype(str))
    drop_y = np.where(drop_x == "", "", y[1].astype(str))
    people = rng.choice([0, 1, 2, 3, 4, 5, 6], n, p=[0.004, 0.692, 0.148, 0.044, 0.021, 0.07, 0.021])
    lines = [
        "key,fare_amount,pickup_datetime,pickup_longitude,pickup_latitude,"
        "dropoff_longitude,dropoff_latitude,passenger_count"
    ]
    columns = (stamp, fare.tolist(), x[0].tolist(), y[0].tolist(), drop_x.tolist(), drop_y.tolist(), people.tolist())
    lines += [
        f"{t}.{i:07d},{f},{t} UTC,{a},{b},{c},{d},{p}"
        for i, (t, f, a, b, c, d, p) in enumerate(zip(*columns, strict=True))
    ]
    with Zip(path) as z:
        z.put("GCP-Coupons-Instructions.rtf", b"{\\rtf1\\ansi " + b"coupon " * 80 + b"}")
        z.put("sample_submission.csv", "key,fare_amount\n2015-01-27 13:08:24.0000002,11.35\n")
        z.put("test.csv", lines[0].replace(",fare_amount", "") + "\n")
        z.put("train.csv", "\n".join(lines) + "\n")


def jigsaw_toxic_comment_classification_challenge(path: Path, rng: Generator, scale: float) -> None:
    classes = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
    n, m = int(159571 * scale), int(153164 * scale)
    ids = hexes(rng, n + m, 16)
    comments = texts(rng, n + m, 66)
    share = np.array([0.096, 0.01, 0.053, 0.003, 0.049, 0.009])
    labels = pd.DataFrame((rng.random((m, 6)) < share).astype(int), columns=classes)
    labels[rng.random(m) < 0.58] = -1
    train = pd.DataFrame({"id": ids[:n], "comment_text": comments[:n]})
    train[classes] = (rng.random((n, 6)) < share).astype(int)
    sample = pd.DataFrame({"id": ids[n:]})
    sample[classes] = 0.5
    labels.insert(0, "id", ids[n:])
    tables = {
        "sample_submission.csv": sample,
        "test.csv": pd.DataFrame({"id": ids[n:], "comment_text": comments[n:]}),
        "test_labels.csv": labels,
        "train.csv": train,
    }
    with Zip(path) as z:
        for name, table in tables.items():
            z.put(name + ".zip", nested({name: table.to_csv(index=False)}))


def champs_scalar_coupling(path: Path, rng: Generator, scale: float) -> None:
    types = np.array(["1JHC", "2JHH", "1JHN", "2JHN", "2JHC", "3JHH", "3JHC", "3JHN"])
    molecules, hidden = int(18250 * scale), int(9830 * scale)
    number = np.sort(rng.choice(np.arange(1, 133886), molecules + hidden, replace=False))
    names = np.array([f"dsgdb9nsd_{i:06d}" for i in number])
    is_train = np.zeros(len(names), dtype=bool)
    is_train[rng.choice(len(names), molecules, replace=False)] = True
    atoms = rng.integers(10, 27, len(names))
    owner = np.repeat(np.arange(len(names)), atoms)
    first = np.cumsum(atoms) - atoms
    index = np.arange(len(owner)) - first[owner]
    element = rng.choice(["H", "C", "N", "O"], len(owner), p=[0.51, 0.35, 0.06, 0.08])
    xyz = (2 * rng.standard_normal((len(owner), 3))).round(10)
    pairs = rng.poisson(54.8, len(names)) + 1
    of = np.repeat(np.arange(len(names)), pairs)
    table = pd.DataFrame(
        {
            "molecule_name": names[of],
            "atom_index_0": rng.integers(0, atoms[of]),
            "atom_index_1": rng.integers(0, atoms[of]),
            "type": types[rng.choice(8, len(of), p=[0.15, 0.08, 0.01, 0.03, 0.24, 0.13, 0.32, 0.04])],
        }
    )
    table.insert(0, "id", range(len(table)))
    parts = (rng.standard_normal((len(of), 4)) * [20, 0.1, 0.4, 0.3]).round(6)
    target = parts.sum(axis=1)
    in_train = is_train[of]
    labelled = is_train[owner]
    train = table[in_train].assign(scalar_coupling_constant=target[in_train].round(6))
    contributions = train[["molecule_name", "atom_index_0", "atom_index_1", "type"]].copy()
    contributions[["fc", "sd", "pso", "dso"]] = parts[in_train]
    structures = pd.DataFrame({"molecule_name": names[owner], "atom_index": index, "atom": element})
    structures[["x", "y", "z"]] = xyz
    site = structures.loc[labelled, ["molecule_name", "atom_index"]]
    tensors = site.copy()
    tensors[["XX", "YX", "ZX", "XY", "YY", "ZY", "XZ", "YZ", "ZZ"]] = (
        100 + 80 * rng.standard_normal((len(site), 9))
    ).round(4)
    mine = names[is_train]
    dipoles = pd.DataFrame(rng.standard_normal((molecules, 3)).round(4), columns=["X", "Y", "Z"])
    dipoles.insert(0, "molecule_name", mine)
    test = table[~in_train]
    tables = {
        "dipole_moments.csv": dipoles,
        "magnetic_shielding_tensors.csv": tensors,
        "mulliken_charges.csv": site.assign(mulliken_charge=rng.standard_normal(len(site)).round(6)),
        "potential_energy.csv": pd.DataFrame(
            {"molecule_name": mine, "potential_energy": rng.normal(-400, 40, molecules).round(5)}
        ),
        "sample_submission.csv": test[["id"]].assign(scalar_coupling_constant=0),
        "scalar_coupling_contributions.csv": contributions,
        "structures.csv": structures,
        "test.csv": test,
        "train.csv": train,
    }
    with Zip(path) as z:
        for name, frame in tables.items():
            z.put(name, frame.to_csv(index=False))
        lines = [f"{e} {a:.10f} {b:.10f} {c:.10f}" for e, (a, b, c) in zip(element.tolist(), xyz.tolist(), strict=True)]
        for k, name in enumerate(names):
            z.put(
                f"structures/{name}.xyz", "\n".join([str(atoms[k]), "", *lines[first[k] : first[k] + atoms[k]]]) + "\n"
            )


def herbarium_2021_fgvc8(path: Path, rng: Generator, scale: float) -> None:
    categories, n = int(6000 * scale), int(50000 * scale)
    ids = np.sort(rng.choice(64500, categories, replace=False))
    weight = rng.lognormal(0, 1, categories)
    owner = np.concatenate([np.arange(categories), rng.choice(categories, n - categories, p=weight / weight.sum())])
    owner = ids[rng.permutation(owner)]
    image_ids = rng.permutation(3 * n)[:n]
    images, annotations = [], []
    for k, (image, category) in enumerate(zip(image_ids.tolist(), owner.tolist(), strict=True)):
        name = f"images/{category // 100:03d}/{category % 100:02d}/{image}.jpg"
        annotations.append({"category_id": category, "id": 3 * k + 1, "image_id": image, "institution_id": k % 5})
        images.append(
            {"file_name": name, "height": int(rng.integers(600, 1001)), "id": image, "license": 0, "width": 1000}
        )
    metadata = {
        "annotations": annotations,
        "categories": [
            {"family": f"Family {c % 400}", "id": c, "name": f'Carex "{c}" L.', "order": f"Order {c % 90}"}
            for c in ids.tolist()
        ],
        "images": images,
        "info": {
            "contributor": "Nobody",
            "date_created": "2021-03-01",
            "year": 2021,
            "url": "http://example.org/é",
            "version": "1",
        },
        "institutions": [{"id": i, "name": f"Museum {i}"} for i in range(5)],
        "licenses": [{"id": 0, "name": "CC", "url": "x"}],
    }
    m = n // 8
    with Zip(path) as z:
        z.put("sample_submission.csv", pd.DataFrame({"Id": range(m), "Predicted": 0}).to_csv(index=False))
        for k in range(m):
            z.put(f"test/images/{k // 1000:03d}/{k}.jpg", jpeg(rng, 1500))
        z.put("test/metadata.json", json.dumps({"images": [], "info": {}, "licenses": []}))
        for image in sorted(i["file_name"] for i in images):
            z.put(f"train/{image}", jpeg(rng, 1500))
        z.put("train/metadata.json", json.dumps(metadata))


def question(rng: Generator, k: int, document: str, example_id: object) -> dict:
    """One line of simplified-nq-train.jsonl."""
    tokens = document.count(" ") + 1
    candidates = np.sort(rng.integers(0, tokens, (int(tokens / 40) + 1, 2)), axis=1).tolist()
    long = {"start_token": -1, "candidate_index": -1, "end_token": -1}
    short, yes_no = [], "NONE"
    if rng.random() < 0.5:
        s, e = candidates[0]
        e += 5
        long = {"start_token": s, "candidate_index": 0, "end_token": e}
        u = rng.random()
        if u < 0.7:
            short = [{"start_token": s + 2 * j, "end_token": s + 2 * j + 2} for j in range(int(rng.integers(1, 3)))]
        elif u < 0.73:
            yes_no = ["YES", "NO"][k % 2]
    return {
        "document_text": document,
        "long_answer_candidates": [
            {"start_token": s, "top_level": bool(j % 3), "end_token": e} for j, (s, e) in enumerate(candidates)
        ],
        "question_text": f"which {document[:30].strip()} is number {k}",
        "annotations": [
            {
                "yes_no_answer": yes_no,
                "long_answer": long,
                "short_answers": short,
                "annotation_id": int(rng.integers(0, 1 << 64, dtype=np.uint64)),
            }
        ],
        "document_url": f"https://en.wikipedia.org//w/index.php?title=Page_{k}&amp;oldid={k * 7919}",
        "example_id": example_id,
    }


def tensorflow2_question_answering(path: Path, rng: Generator, scale: float) -> None:
    n = int(8000 * scale)
    marked = [t.replace(".", ". </P> <P>") for t in texts(rng, 2000, 320)]
    lines = []
    for k in range(n):
        document = " ".join(marked[int(i)] for i in rng.integers(0, len(marked), 20))
        lines.append(json.dumps(question(rng, k, document, int(rng.integers(-(1 << 63), 1 << 62)))))
    with Zip(path) as z:
        z.put("sample_submission.csv", "example_id,PredictionString\n-123_long,\n-123_short,\n")
        z.put(
            "simplified-nq-test.jsonl",
            json.dumps({"example_id": "-123", "question_text": "q", "document_text": "d"}) + "\n",
        )
        z.put("simplified-nq-train.jsonl", "\n".join(lines) + "\n")


def make(competition: str, path: Path, rng: Generator, scale: float) -> None:
    """Write the download zip of `competition` to `path`."""
    globals()[competition.replace("-", "_")](path, rng, scale)
