from competitions.download import Download
from competitions.preparation import Preparation
from competitions.text_normalization import prepare_language


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    return prepare_language(raw, edition, language="ru")
