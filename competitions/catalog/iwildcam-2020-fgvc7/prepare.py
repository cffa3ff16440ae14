from typing import Any

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing import coco
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.preparing.images import PARAMETER, encode_anew, encoded

TRAIN, TEST = "iwildcam2020_train_annotations.json", "iwildcam2020_test_information.json"
DETECTIONS = "iwildcam2020_megadetector_results.json"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    labelled, unlabelled = raw.read_json(TRAIN), raw.read_json(TEST)
    coco.require_keys(labelled, "annotations", "images", "categories", "info")
    coco.require_keys(unlabelled, "images", "categories", "info")
    images, annotations = pd.DataFrame(labelled["images"]), pd.DataFrame(labelled["annotations"])
    if not images["id"].is_unique:
        raise DownloadError(f"{TRAIN} lists an image twice; download it again")
    in_test = images["location"].isin(draw_locations(images["location"], edition))
    train, test = images[~in_test], images[in_test]
    truth = annotations[annotations["image_id"].isin(test["id"])]
    answers = pd.DataFrame({"Id": truth["image_id"], "Category": truth["category_id"]})
    guesses = np.random.RandomState(0).randint(0, 676, len(answers))
    out = Preparation()
    train_annotations = annotations[annotations["image_id"].isin(train["id"])]
    out.public.json(TRAIN, document(labelled, annotations=train_annotations, images=train))
    out.public.json(TEST, document(unlabelled, images=test))
    out.public.copy(DETECTIONS, raw.file(DETECTIONS))
    for folder, part in (("train", train), ("test", test)):
        out.public.copies((f"{folder}/{image}.jpg", raw.file(f"train/{image}.jpg")) for image in part["id"])
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(Category=guesses))
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test/", encoded, raw, params[PARAMETER])
    return out


def draw_locations(locations: pd.Series, edition: Edition) -> list[Any]:
    """Draw 22 % of the locations, then move locations one by one until the share of test images is just below 22 %."""
    train, test = map(list, hold_out(locations.unique(), 0.22))
    # As published, test images count twice in the denominator.
    extra = 0 if edition == "v2" else 1  # v2 fixes test-share

    def share() -> float:
        count = int(locations.isin(test).sum())
        return count / (len(locations) + extra * count)

    while share() < 0.22:
        test.append(train.pop())
    while share() > 0.22:
        train.append(test.pop())
    return test


def document(original: dict[str, Any], **lists: pd.DataFrame) -> dict[str, Any]:
    """Make a JSON document of frames. As published, missing values become NaN, and integers in their column floats."""
    lists["categories"] = pd.DataFrame(original["categories"])
    return {**{name: rows.to_dict(orient="records") for name, rows in lists.items()}, "info": original["info"]}
