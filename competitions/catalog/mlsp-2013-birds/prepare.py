"""Renumber the labelled half of the recordings from 0, also in the labels and the derived features."""

from collections.abc import Iterator

import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

SPECIES = range(19)
TEST_RECORDINGS = 64
HISTOGRAM_HEADER = "rec_id,[histogram of segment features]"
FEATURES = ("histogram_of_segments.txt", "segment_features.txt", "segment_rectangles.txt")
PICTURES = ("filtered_spectrograms", "spectrograms", "supervised_segmentation")


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    data = raw.archive("mlsp_contest_dataset.zip")
    essential, supplemental = (f"mlsp_contest_dataset/{part}_data" for part in ("essential", "supplemental"))
    folds = data.read_csv(f"{essential}/CVfolds_2.txt").query("fold == 0").reset_index(drop=True)
    test = set(folds.sample(frac=0.2, random_state=0).index)
    new_id = {old: new for new, old in enumerate(folds["rec_id"])}
    files = data.read_csv(f"{essential}/rec_id2filename.txt")
    files = files[files["rec_id"].isin(new_id)].assign(rec_id=lambda rows: rows["rec_id"].map(new_id))
    if len(test) != TEST_RECORDINGS or len(files) != len(folds):
        raise DownloadError("CVfolds_2.txt and rec_id2filename.txt do not list 322 labelled recordings; download again")

    labels = list(_lines(data, f"{essential}/rec_labels_test_hidden.txt", new_id))
    hidden = [(rec_id, "?" if rec_id in test else text) for rec_id, text in labels]
    present = {rec_id: set(map(int, filter(None, text.split(",")))) for rec_id, text in labels if rec_id in test}
    pairs = [(rec_id * 100 + bird, int(bird in birds)) for rec_id, birds in present.items() for bird in SPECIES]
    sample = [(rec_id * 100 + bird, 0) for rec_id in sorted(test) for bird in SPECIES]

    out = Preparation()
    new_folds = folds.assign(rec_id=folds.index, fold=folds.index.isin(test).astype(int))
    out.public.table("essential_data/CVfolds_2.txt", new_folds)
    out.public.table("essential_data/rec_id2filename.txt", files)
    rows = (f"{rec_id},{text}\n" if text else f"{rec_id}\n" for rec_id, text in hidden)
    out.public.text("essential_data/rec_labels_test_hidden.txt", "rec_id,[labels]\n" + "".join(rows))
    out.private.table("answers.csv", pd.DataFrame(pairs, columns=["Id", "Probability"]))
    out.public.table("sample_submission.csv", pd.DataFrame(sample, columns=["Id", "Probability"]))
    for name in FEATURES:
        path = f"{supplemental}/{name}"
        # v2 fixes histogram-header
        header = HISTOGRAM_HEADER if edition == "v1" else data.read_text(path).splitlines()[0]
        lines = "".join(f"{rec_id},{text}\n" for rec_id, text in _lines(data, path, new_id))
        out.public.text(f"supplemental_data/{name}", f"{header}\n{lines}")

    public_files = [
        f"{essential}/species_list.txt",
        f"{supplemental}/segment_clusters.bmp",
        f"{supplemental}/segment_mosaic.bmp",
    ]
    public_files += [f"{essential}/src_wavs/{name}.wav" for name in files["filename"]]
    public_files += [f"{supplemental}/{folder}/{name}.bmp" for folder in PICTURES for name in files["filename"]]
    drawn = files if edition == "v1" else files[~files["rec_id"].isin(test)]  # v2 fixes examples-of-test-recordings
    examples = (f"{supplemental}/segmentation_examples/{name}.bmp" for name in drawn["filename"])
    public_files += [name for name in examples if name in data]
    out.public.copies((name.removeprefix("mlsp_contest_dataset/"), data.file(name)) for name in public_files)
    return out


def _lines(data: Download, path: str, new_id: dict[int, int]) -> Iterator[tuple[int, str]]:
    """Yield (new number, text after the first comma) for each line about a labelled recording."""
    for line in data.read_text(path).splitlines()[1:]:
        old, _, text = line.partition(",")
        if int(old) in new_id:
            yield new_id[int(old)], text
