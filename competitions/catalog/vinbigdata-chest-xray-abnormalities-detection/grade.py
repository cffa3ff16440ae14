import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.checks import require_columns, require_rows, require_same_ids
from competitions.scoring.compound_cells import labelled_columns
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.coco import coco_average_precision
from competitions.scoring.metrics.detection import Detections, voc_mean_average_precision
from competitions.scoring.metrics.items import distinct
from competitions.scoring.reading import Reads

from .columns import BOX

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    """COCO's average precision at IoU 0.4 in v1, where repeated images are combined; that of PASCAL VOC 2010 in v2."""
    require_columns(submission, "PredictionString", "image_id")
    number = {image: position for position, image in enumerate(answers["image_id"].unique())}
    if edition == "v2":  # v2 fixes repeated-images
        require_rows(submission, len(number))
    require_same_ids(submission, answers, on="image_id")
    rows, names, numbers = labelled_columns(submission, "PredictionString", 5, separator=" ")
    try:
        codes, classes = distinct(names)
        label = np.array([int(float(name)) for name in classes], dtype=np.float64)[codes]
    except (ValueError, OverflowError) as error:
        raise InvalidSubmission(f"`PredictionString` needs class numbers: {str(error)[:80]}.") from error
    image = submission["image_id"].map(number).to_numpy()[rows]
    confidence, boxes, true_boxes = numbers[:, 0], numbers[:, 1:], answers[BOX].to_numpy()
    image_numbers = answers["image_id"].map(number)
    if edition == "v2":  # v2 fixes corners-as-sizes, ids-from-zero, not-kaggles-metric, inverted-boxes-free
        if not np.isfinite(confidence).all():
            raise InvalidSubmission("Every confidence in `PredictionString` must be a finite number.")
        true_label = answers["class_id"].to_numpy(dtype=object)
        true = Detections(image_numbers.to_numpy(), true_label, np.ones(len(answers)), true_boxes, len(number))
        return voc_mean_average_precision(true, Detections(image, label.astype(object), confidence, boxes, len(number)))
    with np.errstate(all="ignore"):  # infinite corners
        areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    # As published, the far corner is used as width and height, and ids start at 0.
    truth, predicted = (image_numbers, answers["class_id"], true_boxes), (image, label, boxes, confidence)
    return coco_average_precision(truth, predicted, areas, zero_means_unmatched=True)
