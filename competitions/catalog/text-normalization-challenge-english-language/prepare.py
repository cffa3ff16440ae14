from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.text_normalization import prepare_language


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    return prepare_language(raw, edition, language="en")
