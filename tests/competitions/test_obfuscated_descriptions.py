"""Every competition has a description that does not tell which one it is, and still tells all that solving it needs."""

from __future__ import annotations

import re

import pytest

from competitions import registry

IDS = sorted({name for split in ("all", "dev", "demo") for name in registry.list(split)})
# Hosts, sponsors, sites, data sets, places and people by which a competition would be recognised.
WORDS = r"""
kaggle|fgvc|google|facebook|jigsaw|lyft|nuscenes|palo alto|ai4code|alaska2|aptos|aravind|bristol|squibb|cdiscount|champs
|chaii|wikipedia|stack ?exchange|freesound|zenodo|goes-16|h&m|new york|bishop museum|naturalis|inaturalist|patchcamelyon
|pcam|hms|hotel-id|hubmap|icecube|south pole|imet|metropolitan|iwildcam|civil comments|kuzushiji|lmsys|chatbot|ntu|timit
|mlsp|oregon|rotten|pang|socher|stanford|kinect|nfl|nomad2018|osic|paddy|petfinder|pawpularity|aarhus|ingv|reddit|pizza
|ranzcr|rsna|miccai|seti|siim|fisabio|isic|covid|android|titanic|spaceship|poe|lovecraft|shelley|openvaccine|statoil
|c-core|sentinel-1|ctgan|tensorflow|speech commands|natural questions|tgs|icml|humpback|north atlantic|tweets?|patents?
|uw-madison|wisconsin|vesuvius|herculaneum|vinbigdata|imagenet|brats|learning agency|playground|competition|challenge
"""
GIVEN_AWAY = re.compile(
    rf"\b(?:{WORDS.replace(chr(10), '')})\b|https?://|\b(?:19[5-9]|20[0-4])\d\b(?! compress|\))", re.I
)
CODE = re.compile(r"```.*?```|`[^`]*`|^ {4,}[^\n]*$", re.S | re.M)
# Dates and versions that are no part of the task.
LEFT_OUT = {"us-patent-phrase-to-phrase-matching": {"2021.05"}}


def texts(name: str) -> tuple[str, str]:
    competition = registry.get(name)
    return competition.description, competition.obfuscated_description


def facts(text: str) -> str:
    """All but title and overview."""
    return text.split("\n## Data", 1)[1]


@pytest.mark.parametrize("name", IDS)
def test_nothing_gives_it_away(name: str) -> None:
    obfuscated = texts(name)[1]
    prose = CODE.sub("", obfuscated)
    assert GIVEN_AWAY.findall(prose) == []
    squeezed = re.sub(r"\W+", " ", prose.lower())
    title = re.sub(r"\W+", " ", registry.get(name).facts.name.lower()).strip()
    assert title not in squeezed
    if "-" in name:
        assert name.lower() not in obfuscated.lower()
        assert name.lower().replace("-", " ") not in squeezed


@pytest.mark.parametrize("name", IDS)
def test_every_file_column_formula_and_number_is_kept(name: str) -> None:
    original, obfuscated = map(facts, texts(name))
    spans = set(re.findall(r"`[^`\n]+`", CODE.sub(lambda m: m[0] if m[0].count("`") == 2 else "", original)))
    kept = set(re.findall(r"`[^`\n]+`", obfuscated))
    assert {s for s in spans - kept if s not in ("`unknown`", "`silence`")} == set()
    blocks = [block for block in CODE.findall(original) if not re.fullmatch(r"`[^`]*`", block)]
    assert [block for block in blocks if block not in obfuscated] == []
    numbers = set(re.findall(r"\d+(?:\.\d+)*", original)) - set(re.findall(r"\d+(?:\.\d+)*", obfuscated))
    assert numbers - LEFT_OUT.get(name, set()) == set()
    headings = [line for line in original.split("\n") if line.startswith("#")]
    assert headings == [line for line in obfuscated.split("\n") if line.startswith("#")]


@pytest.mark.parametrize("name", IDS)
def test_the_background_is_told_in_other_words_and_keeps_its_numbers_and_names(name: str) -> None:
    original, obfuscated = (text.split("\n## Data", 1)[0].split("\n## Overview", 1) for text in texts(name))
    assert original[0] != obfuscated[0]
    lists = re.compile(r"^(?:Classes|Grades|Gesture numbers|The species, spelled).*", re.S | re.M)
    assert lists.findall(original[1]) == lists.findall(obfuscated[1])
    old, new = (lists.sub("", part[1]).split() for part in (original, obfuscated))
    runs = [{tuple(words[i : i + 6]) for i in range(len(words) - 5)} for words in (old, new)]
    assert len(runs[0] & runs[1]) <= 0.4 * len(runs[1])
    assert set(re.findall(r"`[^`]+`", original[1])) <= set(re.findall(r"`[^`]+`", obfuscated[1]))
    assert 0.45 * len(old) <= len(new)
