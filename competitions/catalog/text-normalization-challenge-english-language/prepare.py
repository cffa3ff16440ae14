from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.text_normalization import prepare_language


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    return prepare_language(raw, edition, language="en")
