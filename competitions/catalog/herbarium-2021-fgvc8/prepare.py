from competitions import coco
from competitions.download import Download
from competitions.preparation import Preparation


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    document = raw.read_json("train/metadata.json")
    coco.require_keys(document, "annotations", "categories", "images", "info", "institutions", "licenses")
    return coco.herbarium(raw, "", document)
