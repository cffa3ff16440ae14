"""One copy of the features (2.1 GB) is in memory. The arrays made from it are written in blocks of rows."""

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .arrays import array_content, array_length, read_array

FOLDER = "timit_11/timit_11"
SEGMENT = 1_000  # consecutive frames that stay together in v2


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    features = read_array(raw, f"{FOLDER}/train_11.npy")
    labels = read_array(raw, f"{FOLDER}/train_label_11.npy")
    unlabelled = array_length(raw, f"{FOLDER}/test_11.npy")
    share = unlabelled / (len(features) + unlabelled)
    frames = np.arange(len(features))
    # Neighbouring frames overlap, so most of an individually drawn test frame would also be in the training set.
    if edition == "v2":  # v2 fixes overlapping-frames
        segments = np.array_split(frames, max(2, len(frames) // SEGMENT))
        train, test = (np.concatenate(part) for part in hold_out(segments, share))
    else:
        train, test = hold_out(frames, share)
    answers = pd.DataFrame({"Id": range(len(test)), "ClassId": labels[test]})
    out = Preparation()
    out.public.content(f"{FOLDER}/train_11.npy", array_content(features, train))
    out.public.content(f"{FOLDER}/train_label_11.npy", array_content(labels, train))
    out.public.content(f"{FOLDER}/test_11.npy", array_content(features, test))
    out.private.table("answers.csv", answers)
    out.public.table("sampleSubmission.csv", answers.assign(ClassId=0))
    return out
