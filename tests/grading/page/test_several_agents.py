"""The page of several agents: side by side, told apart, and as rows to paste."""

import re
from dataclasses import replace

import pandas as pd

from competitions import registry
from grading.page import Results, render_markdown, render_page
from grading.page.build import build_view
from grading.page.results import ON_THE_WEB
from tests.grading.page.board import board
from tests.grading.page.pages import GRADES, HIGHER, RUNS, Document, graded, many, page, snapshots, words


def test_groups_stand_side_by_side() -> None:
    grades = pd.DataFrame([graded("cactus", s, 0.95, group=g) for g in ("first", "second") for s in (1, 2)])
    view = build_view(grades)
    assert [series.label for series in view.series] == ["baseline · first", "baseline · second"]
    assert "baseline · second" in words(page(grades, None))


def test_twelve_agents_have_twelve_colours_and_shapes() -> None:
    html = page(*many(12), thresholds=dict.fromkeys((f"competition-{c}" for c in range(4)), HIGHER))
    document = Document(html)
    uses = [attrs for tag, attrs in document.elements if tag == "use" and "class" in attrs]
    marks = {(attrs["href"], attrs["class"]) for attrs in uses}
    assert {href for href, _ in marks} >= {f"#m{n}" for n in range(12)}
    style = html.split("<style>")[1].split("</style>")[0]
    colours = {re.search(rf"--s{n}: (#\w+)", style)[1] for n in range(12)}  # type: ignore[index]
    assert len(colours) == 12
    shapes = {line.split('d="')[-1] for line in html.splitlines() if re.match(r"<(path|circle|rect) id=\"m\d", line)}
    assert len(shapes) == 12


def test_lines_are_labelled_at_their_ends() -> None:
    """Series without snapshots, as imported ones, have no line over time, and no label."""
    grades, runs = many(2)
    html = page(grades, runs, snapshots=snapshots(("competition-0", 1, 1, 0.95), group="group-1", agent="agent-1"))
    figure = html.split('<figure data-copy="Any medal over time"')[1].split("</figure>")[0]
    assert "agent-1" in figure
    assert "agent-0" not in figure


def test_figures_that_depend_on_what_is_ungraded_are_bounded() -> None:
    grades, runs = many(8)
    ungraded = grades["seed"] == 0
    grades = grades.assign(
        outcome=grades["outcome"].mask(ungraded, "failed"), any_medal=grades["any_medal"] & ~ungraded
    )
    text = words(page(grades, runs))
    assert "What is missing could change 8 figures" in text
    assert re.search(r"agent-0, low: \S+ from 8 of 12 runs; \S+ if all that are missing had failed", text)


def test_runs_that_used_all_their_time_well_are_no_failures() -> None:
    runs = RUNS.assign(status=["timeout", "completed", "completed", "timeout"])
    section = page(runs=runs).split('<section id="failures"')[1].split("</section>")[0]
    assert section.count("<tr>") == 2, "a head, and the invalid submission"
    assert "1 run that reached the time limit with a valid submission is counted here and not listed" in section
    only = page(GRADES[:3], RUNS[:3].assign(status="timeout"))
    assert "None: every run completed" not in only


def test_agents_that_cannot_be_told_apart_share_a_letter() -> None:
    text = words(page(*many(2, competitions=6)))
    assert "Agents that share a letter cannot be told apart" in text
    assert re.search(r"agent-\d (equal )?agent-\d (equal )?Low, any medal \S+ \S+ to \S+", text)
    assert "cannot be told apart" not in words(page())
    assert "cannot be told apart" not in words(page(*many(2))), "four competitions tell nothing"


def test_the_order_of_agents_is_said_with_its_uncertainty_and_holds_in_all_tables() -> None:
    """agent-1 has all medals, agent-0 every other, agent-2 none."""
    points = [1 - n / 20 for n in range(21)]
    medals = {"agent-1": (0.95, 0.95), "agent-0": (0.95, 0.6), "agent-2": (0.6, 0.6)}
    grades = pd.DataFrame(
        [
            graded(f"c-{c}", s, scores[s], agent=agent, thresholds=HIGHER, complexity="low")
            for agent, scores in medals.items()
            for c in range(6)
            for s in (0, 1)
        ]
    )
    html = page(grades, None, percentiles={f"c-{c}": points for c in range(6)})
    ranks = html.split('id="ranks"')[1].split("</table>")[0]
    rows = [words(f"<tr>{row}") for row in ranks.split("<tr>")[2:]]
    assert rows == [
        "agent-1 1 1 to 1 1.00 95.0 [95.0, 95.0]",
        "agent-0 2 2 to 2 1.00 77.5 [60.0, 95.0]",
        "agent-2 3 3 to 3 – 60.0 [60.0, 60.0]",
    ]
    for part in ("outcomes", "attempts", "published", "conditions"):
        names = re.findall(r"agent-\d", html.split(f'id="{part}"')[1].split("</table>")[0])
        assert list(dict.fromkeys(names)) == list(medals), part
    assert 'id="ranks"' not in page(grades[grades["competition_id"] != "c-0"], None), "five competitions tell nothing"


def test_what_is_missing_is_bounded_by_all_of_it_failing_and_earning_a_medal() -> None:
    rows = [graded("cactus", s, 0.95) for s in (1, 2)] + [graded("diabetes", 1, 0.15)]
    rows.append(graded("diabetes", 2, None, outcome="failed"))
    text = words(page(pd.DataFrame(rows)))
    assert "100.0 from 3 of 4 runs; 75.0 if all that are missing had failed, 100.0 if all had earned a medal" in text
    assert "What is missing" not in words(page())


def test_the_published_row_is_ready_to_paste() -> None:
    grades, runs = many(2)
    runs.loc[runs["agent"] == "agent-1", "time_limit_seconds"] = 86400.0
    leaks = {("v1", "competition-0"): ["labels"], ("v1", "competition-1"): [f"public{ON_THE_WEB}"]}
    html = page(grades, runs, leaks=leaks, incomplete="fail")
    text = words(html)
    assert "1 of 4 competitions" in text
    assert "Not a ranking. The agents were run under unlike conditions: time limit (agent-" in text
    assert "agent-1: 24 h" in text
    assert "agent-0: 10 min" in text
    assert "time limit: 10 min (published: 24 h)" in text
    pasted = html.split('<pre class="paste">')[1].split("</pre>")[0]
    columns = "Agent | LLMs | Low | Medium | High | All | Hours | Date | Known leakage | Leaky competitions"
    assert pasted.startswith(f"| {columns} |")
    assert (
        r"| agent\-1 [^1] | – | 33.33 ± 8.33 | – | – | – | 24 | 2026-01-01 | not examined | 1 of 4 competitions |"
        in pasted
    )


def test_agents_with_other_competitions_or_seeds_are_not_ranked() -> None:
    grades, runs = many(2)
    assert "Not a ranking" not in words(page(grades, runs))
    other = (grades["agent"] == "agent-1") & (grades["competition_id"] == "competition-3")
    kept = [table[~other.to_numpy()] for table in (grades, runs)]
    text = words(page(*kept))
    assert "unlike conditions: competitions." in text
    assert "These differences include those of the conditions: competitions." in text
    late = (grades["agent"] == "agent-1") & (grades["seed"] == 2)
    kept = [table[~late.to_numpy()] for table in (grades, runs)]
    seeds = "number of counted seeds (agent-0: 3, agent-1: 2)"
    assert f"unlike conditions: {seeds}." in words(page(*kept))
    text = words(page(grades, runs.assign(scorer=runs["agent"] == "agent-1")))
    assert re.search(r"unlike conditions: scorer \(agent-\d: (yes, agent-0: no|no, agent-1: yes)\)\.", text)
    assert "Run with the scorer (agent-1): agents could" in text
    assert "unlike conditions: what is not known of imported results." in words(page(grades, None))
    namesakes = page(*(table.assign(agent="same") for table in (grades, runs))).split('<pre class="paste">')[1]
    assert r"| same · group\-0 |" in namesakes
    assert r"| same · group\-1 |" in namesakes


def test_equal_agents_are_not_called_better_and_conditions_are_said_of_each() -> None:
    grades, runs = many(2, competitions=6)
    same = grades.assign(any_medal=False, gold_medal=False, medal=None)
    html = page(same, runs)
    rows = html.split('id="differences"')[1].split("</table>")[0]
    assert rows.count('<span class="cover">equal</span>') >= 2
    assert words(html.split('id="conditions"')[1]).count("process ") >= 2


def test_an_order_is_named_where_there_is_one() -> None:
    one = GRADES["seed"] == 1
    assert "seeds differ most first" in words(page())
    assert "differ most first" not in words(page(GRADES[one], RUNS[RUNS["seed"] == 1]))
    first = GRADES["competition_id"] == "cactus"
    assert "differ most first" not in words(page(GRADES[first], RUNS[RUNS["competition_id"] == "cactus"]))


def test_a_split_is_all_that_the_page_shows() -> None:
    """Every part, also the tables of single runs; a seed that ran elsewhere is still an incomplete one."""
    results = board(2, competitions=30, requests=2)
    low, medium = registry.list("low"), registry.list("medium")
    chosen = replace(results, expected=dict.fromkeys(low, "low"), examined={**results.examined})
    chosen.examined.pop("familiarity")  # type: ignore[attr-defined]
    for text in (render_page(chosen), render_markdown(chosen).replace("\\", "")):
        assert low[0] in text
        assert [name for name in medium if name in text] == []
    elsewhere = results.grades["competition_id"].isin(low) & (results.grades["seed"] == 2)
    partly = replace(chosen, grades=results.grades[~elsewhere], runs=None, incomplete="fail")
    assert "22 competitions × 3 seeds" in words(render_page(partly))


def test_editions_of_a_group_are_rows_of_the_table_of_sensitivity() -> None:
    grades, runs = many(1)
    both = pd.concat([grades, grades.assign(edition="v2", any_medal=False)])
    table = page(both, runs).split('id="sensitivity"')[1].split("</table>")[0]
    padded = "ungraded runs counted as failures"
    rows = [words(row) for row in table.split("<tr>") if padded in row]
    assert [row.split(padded)[0].split()[-1] for row in rows] == ["v1", "v2"]
    assert [row.split(padded)[1] for row in rows] == [" 33.3", " 0.0"]
    assert 'id="sensitivity"' not in page(grades, runs), "no decision changes anything"


def test_the_human_percentile_stands_beside_medals() -> None:
    points = [1 - n / 20 for n in range(21)]
    results = Results(*many(2), percentiles={f"competition-{c}": points for c in range(4)})
    assert re.search(r"agent-1 ?4 competitions × 3 seeds.* 33\.3\S+ 72 ", words(render_page(results)))
    assert "| Any medal | Other competitions | Human percentile |" in render_markdown(results)
    assert "| 71.7 |" in render_markdown(results)


def test_the_published_row_claims_no_more_competitions_than_count_and_says_what_is_ungraded() -> None:
    grades, runs = many(1)
    grades.loc[grades["competition_id"] == "competition-3", "complexity"] = "high"
    grades.loc[(grades["seed"] == 0) & (grades["competition_id"] == "competition-3"), "outcome"] = "failed"
    html = page(grades, runs, split_sizes={"low": 3, "medium": 38, "high": 15})
    pasted = html.split('<pre class="paste">')[1].split("</pre>")[0]
    low, medium, high, everything = pasted.splitlines()[2].split(" | ")[2:6]
    assert "of" not in low
    assert medium == "–"
    assert high.endswith("(1 of 15)")
    assert everything.endswith("(4 of 56)")
    assert "counted as failures: 1 run without a grade" in html


def test_scores_over_time_are_drawn_for_many_agents_with_axes() -> None:
    grades, runs = many(8, competitions=1)
    taken = [
        snapshots(
            ("competition-0", seed, 1, 0.6), ("competition-0", seed, 4, 0.95), group=f"group-{a}", agent=f"agent-{a}"
        )
        for a in range(8)
        for seed in range(3)
    ]
    limits = {"competition-0": HIGHER}
    card = page(grades, runs, snapshots=pd.concat(taken), thresholds=limits).split('id="c-1"')[1].split("</article>")[0]
    paths = re.findall(r'<path class="line l\d" data-line="(agent-\d)" d="([^"]+)"', card)
    assert [name for name, _ in paths] == sorted(name for name, _ in paths)
    assert [path.count("M") for _, path in paths] == [3] * 8, "a line for each run"
    assert "gold 0.9" in card
    assert "<span>0</span><span>2 h</span><span>4 h</span>" in card
