"""Formatting of numbers, durations, sizes and results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from common.units import elapsed
from grading.words import KIND_WORDS

if TYPE_CHECKING:
    from grading.page.view import Result

DASH = "\N{EN DASH}"


def number(value: float | None) -> str:
    """Format a score or threshold with at most 5 decimals, to which reports round.

    >>> number(0.982340001), number(3971366.0), number(1234567.125), number(0.0), number(None)
    ('0.98234', '3,971,366', '1,234,567.125', '0', '–')
    """
    if value is None:
        return DASH
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "\N{MINUS SIGN}∞"
    if abs(value) >= 1e15:
        return f"{value:.3e}".replace("-", "\N{MINUS SIGN}")
    separated = f"{value:,.5f}" if abs(value) >= 100_000 else f"{value:.5f}"
    text = separated.rstrip("0").rstrip(".")
    return text.replace("-", "\N{MINUS SIGN}") if text != "-0" else "0"


def percent(fraction: float, decimals: int = 1) -> str:
    r"""Format a fraction in percent, without the percent sign; a dash for NaN.

    >>> percent(1 / 3), percent(-0.5), percent(float("nan"))
    ('33.3', '−50.0', '–')
    """
    return DASH if math.isnan(fraction) else f"{100 * fraction:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def signed(value: float, decimals: int = 2) -> str:
    r"""Format a number with its sign; a dash for NaN.

    >>> signed(0.5), signed(-0.25), signed(float("nan"))
    ('+0.50', '−0.25', '–')
    """
    return DASH if math.isnan(value) else f"{value:+.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def signed_span(low: float, high: float, decimals: int = 2) -> str:
    """An interval whose ends have signs; one dash if it is unknown.

    >>> signed_span(-0.25, 0.5), signed_span(float("nan"), float("nan"))
    ('−0.25 to +0.50', '–')
    """
    return DASH if math.isnan(low) else f"{signed(low, decimals)} to {signed(high, decimals)}"


def chance(p: float) -> str:
    """Format a p-value.

    >>> chance(0.03125), chance(1e-9), chance(float("nan"))
    ('0.031', '< 0.001', '–')
    """
    return DASH if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_values(p: float, corrected: float) -> str:
    """Format a p-value, with the corrected one in brackets if it is another one.

    >>> p_values(0.0123, 0.037), p_values(0.2, 0.2)
    ('0.012 (0.037)', '0.200')
    """
    return chance(p) if p == corrected or math.isnan(corrected) else f"{chance(p)} ({chance(corrected)})"


def span(low: float, high: float, decimals: int = 1) -> str:
    """An interval of a fraction in percent; a dash if it is unknown.

    >>> span(0.0048, 0.85), span(float("nan"), float("nan"))
    ('0.5 to 85.0', '–')
    """
    return DASH if math.isnan(low) else f"{percent(low, decimals)} to {percent(high, decimals)}"


def with_interval(rate: Mapping[Any, Any]) -> str:
    """A row of rates as its mean with the interval over other runs, in percent.

    >>> with_interval({"mean": 0.16, "ci_low": 0.141, "ci_high": 0.183})
    '16.0 [14.1, 18.3]'
    """
    if math.isnan(rate["ci_low"]):
        return percent(rate["mean"])
    return f"{percent(rate['mean'])} [{percent(rate['ci_low'])}, {percent(rate['ci_high'])}]"


def duration(seconds: float | None) -> str:
    """Format a duration in at most two units; a dash without one."""
    return DASH if seconds is None or not math.isfinite(seconds) else elapsed(seconds)


def size(count: float) -> str:
    """Format a number of bytes in binary units.

    >>> size(64 << 30), size(1.5 * (1 << 30)), size(512 << 20)
    ('64 GiB', '1.5 GiB', '512 MiB')
    """
    unit, name = (1 << 30, "GiB") if count >= 1 << 30 else (1 << 20, "MiB")
    return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"


def result_title(result: Result, timing: bool = False) -> str:
    """One line about a result, for tooltips and screen readers."""
    who = f"{result.series.label}, seed {result.seed}"
    if timing:
        ended = "" if result.status in (None, "completed") else f" ({result.ended})"
        return f"{who}: {duration(result.duration)}{ended}"
    score = "" if result.score is None else f"{number(result.score)}, "
    beaten = "" if math.isnan(result.percentile) else f", human percentile {result.percentile:.0f}"
    return f"{who}: {score}{KIND_WORDS[result.kind]}{beaten}"
