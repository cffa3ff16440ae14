"""Copied code is found whatever was done to it, and honest code for the same task is left alone."""

from __future__ import annotations

import pytest

from grading.integrity.matching import THRESHOLD, Corpus, Match
from grading.integrity.tokens import Document, tokenize
from grading.integrity.winnowing import WINDOW, K, fingerprints, hashes
from tests.grading.integrity.copies import DISGUISES, HONEST, KERNELS, read


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus([tokenize(name, read(name)) for name in KERNELS])


def best(corpus: Corpus, code: str) -> Match | None:
    found = corpus.matches(tokenize("mine", code))
    return max(found, key=lambda match: (match.flagged, match.similarity), default=None)


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_copied_kernel_is_found(corpus: Corpus, kernel: str, disguise: str) -> None:
    match = best(corpus, DISGUISES[disguise](read(kernel)))
    assert match is not None
    assert (match.second, match.flagged) == (kernel, True)


@pytest.mark.parametrize("name", HONEST)
def test_honest_code_is_not_flagged(corpus: Corpus, name: str) -> None:
    match = best(corpus, read(name))
    assert match is None or not match.flagged


def test_precision_and_recall_on_the_planted_cases(corpus: Corpus) -> None:
    """The figures of docs/integrity.md."""
    found = {(k, d): best(corpus, change(read(k))) for k in KERNELS for d, change in DISGUISES.items()}
    honest = {name: best(corpus, read(name)) for name in HONEST}
    honest |= {k: best(Corpus([tokenize(o, read(o)) for o in KERNELS if o != k]), read(k)) for k in KERNELS}
    hits = sum(match is not None and match.flagged and match.second == k for (k, _), match in found.items())
    false = sum(match is not None and match.flagged for match in honest.values())
    margin = max((max(m.similarity, m.of_first, m.of_second) for m in honest.values() if m), default=0.0)
    print(f"copies: {hits}/{len(found)} found; honest: {false}/{len(honest)} flagged; highest honest {margin:.2f}")
    assert hits / len(found) == 1.0
    assert hits / (hits + false) == 1.0
    assert margin < THRESHOLD / 2


def test_every_long_enough_shared_run_is_found() -> None:
    """The guarantee of winnowing."""
    least = K + WINDOW - 1
    for shift in range(40):
        shared = [f"t{i}" for i in range(least)]
        a = [f"a{i}" for i in range(shift)] + shared + [f"b{i}" for i in range(30)]
        b = [f"c{i}" for i in range(40 - shift)] + shared
        assert fingerprints(hashes(a)).keys() & fingerprints(hashes(b)).keys()


def test_no_run_shorter_than_a_hash_is_found() -> None:
    a = [f"t{i}" for i in range(K - 1)] + [f"a{i}" for i in range(60)]
    b = [f"t{i}" for i in range(K - 1)] + [f"b{i}" for i in range(60)]
    assert not fingerprints(hashes(a)).keys() & fingerprints(hashes(b)).keys()


def test_fragments_name_the_lines_of_both_sides(corpus: Corpus) -> None:
    kernel = read("kernel_text").split("\n")
    first = next(i for i, line in enumerate(kernel) if line.startswith("word_vectorizer = "))
    taken = "\n".join(kernel[first : first + 6])
    code = read("own_code") + "\n" + taken
    (match,) = corpus.matches(tokenize("mine", code))
    (fragment,) = match.fragments
    assert code.split("\n")[fragment.first[0] - 1].startswith("word_vectorizer = ")
    assert kernel[fragment.second[0] - 1].startswith("word_vectorizer = ")
    assert fragment.first[1] - fragment.first[0] == fragment.second[1] - fragment.second[0] == 5


def own(number: int, lines: int = 40) -> str:
    """Code that shares nothing with another number's."""
    return "".join(f"value_{n} = step_{number}_{n}(data, depth={n}).with_{number}_{n}()\n" for n in range(lines))


def test_what_half_of_the_kernels_share_counts_for_nothing() -> None:
    shared = "\n".join(read("kernel_text").split("\n")[:30])
    documents = [tokenize(f"kernel {i}", shared + own(i, 150)) for i in range(4)]
    assert not any(match.flagged for match in Corpus(documents).matches(tokenize("mine", shared)))
    assert any(match.of_first > 0.9 for match in Corpus(documents[:3]).matches(tokenize("mine", shared)))


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_copy_of_a_kernel_that_most_others_are_forks_of_is_found(disguise: str) -> None:
    """Five of nine kernels are one notebook and its forks."""
    notebook = read("kernel_text")
    forks = [tokenize(f"fork {i}", notebook + own(i, 3 * i)) for i in range(5)]
    others = [tokenize(f"kernel {i}", own(i)) for i in range(10, 14)]
    corpus = Corpus([*forks, *others])
    assert any(match.flagged for match in corpus.matches(tokenize("mine", DISGUISES[disguise](notebook))))


def test_a_template_that_everybody_was_given_counts_for_nothing() -> None:
    kernel = tokenize("other run", read("kernel_gbm"))
    corpus = Corpus([kernel], ignored=[tokenize("template", read("kernel_gbm"))])
    assert list(corpus.matches(tokenize("mine", read("kernel_gbm")))) == []


def test_a_copy_is_found_although_it_is_shipped_in_the_template() -> None:
    kernel = tokenize("kernel", read("kernel_gbm"))
    corpus = Corpus([kernel], ignored=[tokenize("template", read("kernel_gbm"))], whole=True)
    (match,) = corpus.matches(tokenize("mine", read("kernel_gbm")))
    assert match.flagged
    assert match.whole == 1
    assert match.fragments


@pytest.mark.parametrize(
    "text", ["", "\0\0", "def f(:\n  x ==== 1", "'''never closed", "%matplotlib inline\n!ls", "é" * 9]
)
def test_whatever_the_text_is_it_becomes_tokens(text: str) -> None:
    assert isinstance(tokenize("odd", text), Document)


def test_repetition_costs_no_quadratic_time() -> None:
    code = "values.append(compute(first, second, third) + 1)\n" * 2_000
    corpus = Corpus([tokenize("kernel", code)])
    (match,) = corpus.matches(tokenize("mine", code))
    assert match.similarity == 1.0


def test_comments_docstrings_and_imports_are_no_tokens() -> None:
    plain = tokenize("a", "x = load(1)\n")
    dressed = tokenize(
        "b", '"""Doc."""\nimport os, sys  # why\nfrom a import (\n    b,\n    c,\n)\ny = load(27)  # other\n'
    )
    assert plain.tokens == dressed.tokens


def test_lists_of_constants_are_all_alike_and_count_for_little() -> None:
    def listing(prefix: str) -> str:
        return "__all__ = [\n" + "".join(f'    "{prefix}_{n}",\n' for n in range(200)) + "]\n"

    assert list(Corpus([tokenize("kernel", listing("load"))]).matches(tokenize("mine", listing("compute")))) == []
