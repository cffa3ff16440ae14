import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import labelled_columns
from competitions.scoring.checks import require_columns, require_rows, require_same_ids
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.coco import coco_average_precision

from .columns import BOX


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """COCO's average precision at IoU 0.4. As published, the predictions of repeated images are combined."""
    require_columns(submission, "PredictionString", "image_id")
    number = {image: position for position, image in enumerate(answers["image_id"].unique())}
    if edition == "v2":
        require_rows(submission, len(number))
    require_same_ids(submission, answers, on="image_id")
    rows, names, numbers = labelled_columns(submission, "PredictionString", 5, separator=" ")
    try:
        label = np.array([int(float(name)) for name in names.tolist()], dtype=np.float64)
    except (ValueError, OverflowError) as error:
        raise InvalidSubmission(f"`PredictionString` needs class numbers: {str(error)[:80]}.") from error
    image = submission["image_id"].map(number).to_numpy()[rows]
    confidence, boxes, true_boxes = numbers[:, 0], numbers[:, 1:], answers[BOX].to_numpy()
    with np.errstate(all="ignore"):  # infinite corners
        areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    if edition == "v2":  # v1 uses the far corner as width and height
        boxes, true_boxes = (np.hstack([b[:, :2], b[:, 2:] - b[:, :2]]) for b in (boxes, true_boxes))
    truth = answers["image_id"].map(number), answers["class_id"], true_boxes
    predicted = image, label, boxes, confidence
    return coco_average_precision(truth, predicted, areas, zero_means_unmatched=edition == "v1")
