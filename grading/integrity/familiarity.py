"""Measure whether a model has memorised texts.

As in the paper: the mean probability that a model assigns to the tokens of a competition's description and discussions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence


def mean_probability(logprobs: Sequence[float | None]) -> float:
    """Mean of exp(log-probability) over tokens; NaN without tokens. None, as for a text's first token, is skipped.

    >>> mean_probability([None, 0.0, math.log(0.5)])
    0.75
    """
    probabilities = [math.exp(min(value, 0.0)) for value in logprobs if value is not None]
    return math.fsum(probabilities) / len(probabilities) if probabilities else math.nan


def at_places(texts: Sequence[Sequence[float]], places: int, seed: str) -> list[float]:
    """Log-probabilities at random places of a competition's texts, as in the paper.

    Each text is drawn with its number of tokens as the weight, so that every token is as likely as any other. With at
    most `places` tokens, these are all of them.

    Args:
        texts: the log-probabilities of each text's tokens.
        places: how many places are drawn, with replacement; 1,000 in the paper.
        seed: decides which; the same places are drawn for every model with the same tokens.
    """
    tokens = [value for text in texts for value in text]
    return tokens if len(tokens) <= places else random.Random(seed).choices(tokens, k=places)
