"""What is measured and at which size. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 1  # raise when a generator changes: cached inputs of another version are made anew


@dataclass(frozen=True)
class Case:
    """One measured piece of work on one competition; `size` describes the inputs at scale 1."""

    kind: str  # prepare | grade
    competition: str
    size: str
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"{self.kind}-{self.competition}")


CASES = [
    Case("prepare", "aerial-cactus-identification", "17,500 jpg of 1.2 KB in train.zip, 4,000 in test.zip"),
    Case("prepare", "histopathologic-cancer-detection", "15,860 + 4,140 loose tif of 28 KB"),
    Case("prepare", "dogs-vs-cats-redux-kernels-edition", "25,000 jpg of 8 KB in train.zip, 12,500 in test.zip"),
    Case("prepare", "siim-covid19-detection", "6,054 + 1,214 study folders, 1-2 dcm of 80 KB each"),
    Case("prepare", "new-york-city-taxi-fare-prediction", "1.5 million rows, 150 MB csv"),
    Case("prepare", "jigsaw-toxic-comment-classification-challenge", "159,571 + 153,164 comments in 4 csv.zip"),
    Case("prepare", "champs-scalar-coupling", "1 million rows, 28,000 xyz files, 6 side tables"),
    Case("prepare", "herbarium-2021-fgvc8", "50,000 jpg of 1.5 KB in 6,000 categories, COCO json"),
    Case("prepare", "tensorflow2-question-answering", "8,000 json lines of 52 KB"),
    Case("grade", "dog-breed-identification", "1,023 rows x 120 breeds"),
    Case("grade", "jigsaw-unintended-bias-in-toxicity-classification", "97,320 rows, answers with 45 columns and text"),
    Case("grade", "AI4Code", "20,000 notebooks, 46 cells on average"),
    Case("grade", "kuzushiji-recognition", "361 pages x 190 characters"),
    Case("grade", "vinbigdata-chest-xray-abnormalities-detection", "1,500 images x 40 predicted boxes"),
    Case("grade", "3d-object-detection-for-autonomous-vehicles", "900 samples (real: 4,536) x 28 boxes"),
    Case("grade", "uw-madison-gi-tract-image-segmentation", "45 case-days x 144 slices x 3 organs, 266 x 266"),
    Case("grade", "tgs-salt-identification-challenge", "1,000 masks of 101 x 101"),
    Case("grade", "tensorflow2-question-answering", "30,738 questions, documents of 8 KB (real: 55 KB)"),
    Case("grade", "champs-scalar-coupling", "466,000 rows"),
    Case(
        "grade", "h-and-m-personalized-fashion-recommendations", "1.37 million customers x 12 articles, 69,000 scored"
    ),
    Case("grade", "text-normalization-challenge-english-language", "993,465 tokens"),
    Case("grade", "siim-covid19-detection", "606 studies + 634 images"),
    Case("grade", "bms-molecular-translation", "484,838 InChI"),
    Case("grade", "spaceship-titanic", "100 submissions x 870 rows, one process", name="grade-100"),
]
