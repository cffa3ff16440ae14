from competitions.editions import Edition
from competitions.preparing import coco
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    # The file is not valid UTF-8. As in the published preparation, its UTF-8 sequences become several characters each.
    document = raw.read_json("nybg2020/train/metadata.json", encoding="latin-1")
    coco.require_keys(document, "annotations", "categories", "images", "info", "licenses", "regions")
    return coco.herbarium(raw, "nybg2020", document, edition)
