from competitions.editions import Edition
from competitions.preparing import coco
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    document = raw.read_json("train/metadata.json")
    coco.require_keys(document, "annotations", "categories", "images", "info", "institutions", "licenses")
    return coco.herbarium(raw, "", document, edition)
