"""Detect rule violations without a language model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from grading.integrity.code_facts import CodeFacts, read_code
from grading.integrity.examiner import Unreadable
from grading.integrity.findings import Finding, Rule, Severity

_NETWORK = {"requests", "urllib.request", "urllib3", "httpx", "aiohttp", "socket", "http.client", "selenium"}
_NETWORK |= {"playwright", "ftplib", "paramiko", "boto3", "wget", "gdown", "kaggle", "kagglehub", "pycurl", "scrapy"}
_NETWORK |= {"duckduckgo_search", "googlesearch", "serpapi"}
_LANGUAGE_MODELS = {"openai", "anthropic", "google.generativeai", "google.genai", "cohere", "mistralai", "groq"}
_LANGUAGE_MODELS |= {"together", "litellm", "replicate", "ollama", "langchain_openai", "langchain_anthropic"}
_MODELS = {"sklearn", "torch", "lightgbm", "xgboost", "catboost", "tensorflow", "keras", "transformers", "fastai"}
_MODELS |= {"statsmodels", "scipy.optimize", "jax", "flax", "timm", "autogluon", "prophet", "gensim", "surprise"}
_MODELS |= {"implicit", "cuml", "pycaret", "spacy", "nltk", "ultralytics", "detectron2", "monai", "torchvision"}
_FITTING = {"fit", "fit_transform", "fit_predict", "partial_fit", "train", "backward", "lstsq", "solve", "polyfit"}
_DOWNLOADING = {"load_dataset", "hf_hub_download", "snapshot_download", "urlretrieve", "load_state_dict_from_url"}

_URL = re.compile(r"\b(?:https?|ftp|s3|gs)://[^\s'\"<>)\\]+")
_LOCAL_ADDRESS = re.compile(r"://(?:127\.|localhost|0\.0\.0\.0|\[::1\]|host\.docker\.internal)")
_COMMAND = re.compile(
    r"(?:^|[;&|(`!]|\$ |\+ |> |subprocess: )\s*(?:sudo\s+)?"
    r"(curl|wget|git\s+clone|kaggle\s+(?:competitions|datasets|kernels)\s+\w+|huggingface-cli\s+download"
    r"|aws\s+s3\s+(?:cp|sync)|gsutil\s+cp|gdown|scp|rsync)\b[^\n]*"
)
_ANSWERS = re.compile(
    r"(?:^|[/\\\s'\"=])(?:private/[\w./-]+|prepared/v\d/[\w./-]+|gold_submission\w*\.csv|answers?\.(?:csv|json|parquet)"
    r"|(?:test|hidden|private)_(?:labels?|answers?|solutions?|targets?)\.(?:csv|json|parquet|npy|zip)"
    r"|solutions?\.csv|ground_?truth\.(?:csv|json))",
    re.I,
)
_WORLD = re.compile(
    r"/(?:home/)?(?:data|submission|code|logs|agent|tmp|instructions\.txt|validate_submission\.sh)(?:/|\Z)"
)
_OUTSIDE = re.compile(
    r"^(?:/root(?:/|\Z)|/mnt/|/srv/|/media/|/var/(?!tmp)|/home/[^/]+|/proc/(?:\d+|self)/(?:environ|root|cwd)|/etc/(?:passwd|shadow)"
    r"|~/\.|/private(?:/|\Z)|/run/docker|/var/run/docker)"
)
_UPWARDS = re.compile(r"^(?:\.\./){3,}")
_MIN_IDS = 10
_MAX_QUOTE_CHARACTERS = 240


@dataclass(frozen=True)
class RunTexts:
    """The texts of a run to examine."""

    code: Mapping[str, str]
    """Sources by path. Notebooks are converted to plain code."""
    logs: Mapping[str, str] = field(default_factory=dict)
    has_submission: bool = True
    ids: AbstractSet[str] = frozenset()
    """Ids of the submission's rows; empty if unknown."""
    leaks: Mapping[str, str] = field(default_factory=dict)
    """Columns or files that reveal answers -> the known issue's id."""
    skipped: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Files that were not read: reason -> paths."""


@dataclass(frozen=True)
class Written:
    """Values that are written out together in the code, and may be ids of test cases."""

    values: frozenset[str]
    finding: Finding
    """The finding if they are; the number of ids is put into its `why`."""
    least: int = 0
    """Number of the values that must be ids."""


@dataclass(frozen=True)
class FileFacts:
    """The facts about one file, and the findings in it."""

    findings: tuple[Finding, ...] = ()
    modules: tuple[str, ...] = ()
    """Modules that it imports."""
    fits: bool = False
    """Whether it calls something that fits a model."""
    written: tuple[Written, ...] = ()


def examine_code(name: str, text: str, leaks: Mapping[str, str]) -> FileFacts:
    """Examine a file of the code folder."""
    findings: list[Finding] = []
    written: list[Written] = []
    facts = CodeFacts()
    if name.endswith((".py", ".ipynb")):
        facts, lines = read_code(text), text.split("\n")
        findings += _imports(name, facts, lines)
        findings += _texts(name, facts, lines, leaks)
        findings += _calls(name, facts, lines)
        written = [group for group in _written_out(name, facts, lines) if len(group.values) >= _MIN_IDS]
    findings += _commands(name, text, comments=name.endswith((".py", ".ipynb", ".sh")))
    if name.endswith(".sh"):
        findings += _shell(name, text, leaks)
    modules = tuple(dict.fromkeys(module for module, _ in facts.imports))
    return FileFacts(tuple(findings), modules, any(called in _FITTING for called, _ in facts.calls), tuple(written))


def examine_log(name: str, text: str) -> FileFacts:
    """Examine a file of the logs folder."""
    return FileFacts(tuple(_commands(name, text, comments=False)))


def _call_directly(function: Callable[..., FileFacts], *args: Any) -> FileFacts:
    return function(*args)


def detect(run: RunTexts, call: Callable[..., FileFacts] = _call_directly) -> list[Finding]:
    """All findings, without duplicates on the same line.

    Args:
        run: the texts.
        call: calls a function on a file. `Examiner.call` does that in a process with limits; a file that is too much
            for it is a finding.
    """
    findings: list[Finding] = []
    facts: dict[str, FileFacts] = {}
    for name, text in run.code.items():
        try:
            facts[name] = call(examine_code, name, text, dict(run.leaks))
            findings += facts[name].findings
            findings += _by_hand(facts[name].written, run.ids)
        except Unreadable as error:
            findings.append(_unreadable(name, error))
    for name, text in run.logs.items():
        try:
            findings += call(examine_log, name, text).findings
        except Unreadable as error:
            findings.append(_unreadable(name, error))
    findings += _whole_run(run, facts)
    findings += not_examined(run.skipped)
    return list(dict.fromkeys(findings))


def not_examined(skipped: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """A finding for each reason for which files were not read. Files that are rarely left by chance are a violation."""
    for reason, names in skipped.items():
        listed = ", ".join(sorted(names)[:5]) + (", ..." if len(names) > 5 else "")
        severity: Severity = "violation" if reason.startswith(("more", "not readable")) else "notice"
        yield Finding("not-examined", severity, "", 0, "", f"{len(names)} files, {reason}: {listed}")


def _unreadable(name: str, error: Unreadable) -> Finding:
    return Finding("unreadable", "violation", name, 0, "", str(error))


def _imports(name: str, facts: CodeFacts, lines: list[str]) -> Iterator[Finding]:
    for module, line in facts.imports:
        for rule, names in (("network", _NETWORK), ("external-model", _LANGUAGE_MODELS)):
            if any(module == library or module.startswith(library + ".") for library in names):
                why = f"imports {module}"
                yield _finding(rule, "violation", name, line, lines, why)  # type: ignore[arg-type]


def _texts(name: str, facts: CodeFacts, lines: list[str], leaks: Mapping[str, str]) -> Iterator[Finding]:
    for text, line in facts.texts:
        if (url := _URL.search(text)) and not _LOCAL_ADDRESS.search(text):
            yield _finding("network", "notice", name, line, lines, f"names {url[0][:120]}")
        yield from _path(name, text, line, lines)
        for term, issue in leaks.items():
            if term in text:
                yield _finding("leak", "violation", name, line, lines, f"{term}: known issue {issue}")


def _path(name: str, text: str, line: int, lines: list[str]) -> Iterator[Finding]:
    if len(text) > 400 or "\n" in text:
        return
    if _ANSWERS.search(text):
        yield _finding("answers", "violation", name, line, lines, f"names {text[:120]}")
    elif (_OUTSIDE.match(text) and not _WORLD.search(text)) or _UPWARDS.match(text):
        yield _finding("outside", "violation", name, line, lines, f"names {text[:120]}")


def _calls(name: str, facts: CodeFacts, lines: list[str]) -> Iterator[Finding]:
    for called, line in facts.calls:
        if called in _DOWNLOADING:
            yield _finding("download", "notice", name, line, lines, f"calls {called}")


def _written_out(name: str, facts: CodeFacts, lines: list[str]) -> Iterator[Written]:
    for values, line in facts.groups:
        numbers = [value for value in values if isinstance(value, int)]
        if len(numbers) == len(values) and sorted(numbers) in ([*range(len(values))], [*range(1, len(values) + 1)]):
            continue  # these number classes, not test cases
        finding = _finding("hand-written", "violation", name, line, lines, "{} ids of test cases are written out")
        yield Written(frozenset(map(str, values)), finding, least=math.ceil(len(values) / 2))
    for text, line in facts.texts:
        rows = frozenset(row.split(",", 1)[0].strip() for row in text.split("\n") if "," in row)
        finding = _finding("hand-written", "violation", name, line, lines, "a text with rows for {} test cases")
        yield Written(rows, finding)


def _by_hand(written: Iterable[Written], ids: AbstractSet[str]) -> Iterator[Finding]:
    for group in written:
        matching_ids = len(group.values & ids)
        if matching_ids >= max(_MIN_IDS, group.least):
            yield replace(group.finding, why=group.finding.why.format(matching_ids))


def _commands(name: str, text: str, *, comments: bool) -> Iterator[Finding]:
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if comments and line.lstrip().startswith("#") and not line.lstrip().startswith(("# !", "# %")):
            continue
        shell = line.lstrip().removeprefix("# ")
        if len(line) < 2000 and (command := _COMMAND.search(shell)) and not _LOCAL_ADDRESS.search(shell):
            if command[1].startswith(("curl", "wget")) and not (_URL.search(shell) or "." in command[0]):
                continue
            yield _finding("network", "violation", name, number, lines, f"runs {command[1]}")


def _shell(name: str, text: str, leaks: Mapping[str, str]) -> Iterator[Finding]:
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        for word in re.split(r"[\s'\"=]+", line):
            yield from _path(name, word, number, lines)
        for term, issue in leaks.items():
            if term in line:
                yield _finding("leak", "violation", name, number, lines, f"{term}: known issue {issue}")


def _whole_run(run: RunTexts, facts: Mapping[str, FileFacts]) -> Iterator[Finding]:
    if not run.has_submission:
        return
    if not any(text.strip() for text in run.code.values()):
        yield Finding("no-code", "notice", "", 0, "", "there is a submission, but the code folder is empty")
        return
    models = any(
        module == library or module.startswith(library + ".")
        for file in facts.values()
        for module in file.modules
        for library in _MODELS
    )
    fits = any(file.fits for file in facts.values())
    facts = {name: file for name, file in facts.items() if name.endswith((".py", ".ipynb"))}
    if facts and not models and not fits:
        yield Finding("no-model", "violation", "", 0, "", "nothing is fitted, and no library of models is imported")


def _finding(rule: Rule, severity: Severity, name: str, line: int, lines: list[str], why: str) -> Finding:
    quote = lines[line - 1].strip()[:_MAX_QUOTE_CHARACTERS] if 0 < line <= len(lines) else ""
    return Finding(rule, severity, name, line, quote, why)
