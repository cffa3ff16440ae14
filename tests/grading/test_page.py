"""The page, the Markdown summary, the terminal's table: complete, self-contained, safe from what agents write."""

import base64
import hashlib
import json
import math
import re
import subprocess
import time
import urllib.request
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib import resources

import pandas as pd
import pytest
from markupsafe import escape

from grading.medals import Thresholds, above_median, medal_for
from grading.page import medal_table, render_markdown, render_page
from grading.page.build import build_view, clean
from grading.page.format import duration, mean_sem, number
from grading.page.scales import MEDAL_SCALE, medal_position, score_axis
from grading.report import GradedSubmission, competition_report

HIGHER = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.5, teams=1221, lower_is_better=False)
LOWER = Thresholds(gold=0.1, silver=0.2, bronze=0.3, median=0.5, teams=40, lower_is_better=True, human=False)
THRESHOLDS = {"cactus": HIGHER, "diabetes": LOWER}
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SCRIPT = resources.files("grading.page").joinpath("page.js").read_text("utf-8")
PREFERS_DARK = {"name": "prefers-color-scheme", "value": "dark"}
EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></script><svg onload=alert(1)>",
    "{{ 7 * 191 }} {% raw %}",
    "javascript:alert(1)",
]


def graded(
    competition, seed, score, *, outcome="valid", message=None, agent="baseline", group="g", thresholds=None, **more
):
    """A row of the table of grades."""
    limits = thresholds or THRESHOLDS.get(competition, HIGHER)
    report = competition_report(
        competition,
        score if outcome == "valid" else None,
        limits,
        submission_path="s.csv",
        submission_exists=outcome != "missing",
    )
    facts = {
        "complexity": "demo",
        "category": "Tabular",
        "edition": "v1",
        "run_id": f"{group}-{agent}-{competition}-{seed}",
        **more,
    }
    return GradedSubmission(report, outcome, message, run_group=group, seed=seed, agent=agent, **facts).to_row()


def ran(competition, seed, *, agent="baseline", group="g", status="completed", seconds=60.0, **more):
    """A row of the table of runs."""
    return {
        "run_group": group,
        "run_id": f"{group}-{agent}-{competition}-{seed}",
        "competition_id": competition,
        "seed": seed,
        "agent": agent,
        "edition": "v1",
        "backend": "process",
        "status": status,
        "message": None,
        "exit_code": 0,
        "started_at": "2026-01-01T00:00:00+00:00",
        "finished_at": "2026-01-01T00:10:00+00:00",
        "duration_seconds": seconds,
        "submission_exists": True,
        "time_limit_seconds": 600.0,
        "code_fingerprint": "0123abcd",
        **more,
    }


GRADES = pd.DataFrame(
    [
        graded("cactus", 1, 0.95),
        graded("cactus", 2, 0.75),
        graded("diabetes", 1, 0.15),
        graded("diabetes", 2, None, outcome="invalid", message="the column id is missing"),
    ]
)
RUNS = pd.DataFrame(
    [ran("cactus", 1), ran("cactus", 2), ran("diabetes", 1, seconds=754.0), ran("diabetes", 2, status="timeout")]
)


class Document(HTMLParser):
    """The elements, attributes and visible text of a page."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self._raw = [], "", None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._raw = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._raw = None
        self.text += " " if tag in ("th", "td", "li", "p", "div", "summary") else ""

    def handle_data(self, data):
        self.text += "" if self._raw else data

    def attributes(self, *names):
        return [attrs[name] for _, attrs in self.elements for name in names if name in attrs]


def page(grades=GRADES, runs=RUNS, **options):
    return render_page(grades, runs, **{"thresholds": THRESHOLDS, **options})


def words(html):
    return " ".join(Document(html).text.split())


def test_the_headline_is_mean_and_standard_error_of_any_medal():
    # seed 1: gold and silver; seed 2: bronze and an invalid submission: 100 % and 50 %
    assert "75.0 ± 25.0" in words(page())


def test_a_benchmark_run_has_the_columns_of_the_paper():
    grades = pd.DataFrame([graded(c, s, 0.95, complexity=x) for c, x in [("a", "low"), ("b", "high")] for s in (1, 2)])
    head = words(page(grades, None)).split("Agent ", 1)[1]
    assert re.match(r"Low = Lite Medium High All", head)


def test_a_partly_run_split_says_so():
    grades = pd.DataFrame([graded(c, 1, 0.95, complexity=x) for c, x in [("a", "low"), ("b", "high")]])
    text = words(page(grades, None, split_sizes={"low": 22, "medium": 38, "high": 15}))
    assert "1 of 22 comp." in text
    assert "2 of 75 comp." in text


def test_one_split_alone_is_not_called_all():
    text = words(page(pd.DataFrame([graded("a", 1, 0.95, complexity="low")]), None))
    assert "only low was run" in text


def test_incomplete_seeds_are_stated():
    grades = GRADES[:-1]  # nothing graded for diabetes, seed 2
    assert "1 incomplete seed (1 ungraded submission): left out" in words(page(grades))
    assert "What is ungraded diabetes, baseline, seed 2: no grade" in words(page(grades))
    assert "What is ungraded" not in words(page())
    markdown = render_markdown(grades, RUNS)
    assert "left out" in markdown
    assert "- diabetes, baseline, seed 2: no grade" in markdown
    assert "counted as failures" in words(page(grades, incomplete="fail"))


def test_the_medal_matrix_has_a_cell_a_competition_and_seed():
    matrix = page().split('<section id="matrix">')[1].split("</section>")[0]
    body = matrix.split("<tbody>")[1].split("</tbody>")[0]
    assert re.findall(r'class="chip (\w+)"', body) == ["gold", "bronze", "silver", "invalid"]


def test_every_score_is_a_mark_in_both_pictures():
    html = page()
    for section in ("scale", "competitions"):
        assert (
            html.split(f'<section id="{section}">')[1].split("</section>")[0].count('<use href="#m0" class="s0" x="')
            >= 3
        )
    assert "baseline, seed 1: 0.95, gold medal" in html


def test_thresholds_of_trained_models_are_labelled():
    text = words(page())
    assert "diabetes not human" in text
    assert "cactus not human" not in text
    assert "The leaderboard of diabetes consists of trained models" in text
    assert "40 trained models" in text
    assert "1,221 teams" in text
    assert "Not against humans" not in words(page(GRADES[GRADES["competition_id"] == "cactus"], None))


def test_failures_are_told_with_their_cause():
    text = words(page()).split("Failures")[-1]
    assert "time limit reached" in text
    assert "the column id is missing" in text


def test_a_long_traceback_shows_its_last_line_first():
    trace = "Traceback (most recent call last):\n" + '  File "grade.py", line 1\n' * 30 + "KeyError: 'label'"
    grades = pd.DataFrame([graded("cactus", 1, None, outcome="failed", message=trace)])
    shown = escape("KeyError: 'label'")
    assert f"<summary><bdi>{shown}</bdi></summary>" in page(grades, None)


def test_a_run_that_nobody_graded_is_shown():
    runs = pd.concat([RUNS, pd.DataFrame([ran("cactus", 3, status="crashed")])])
    text = words(page(runs=runs))
    assert "agent crashed, not graded" in text
    assert "1 incomplete seed" in text


def test_a_competition_of_which_no_run_was_graded_stands_in_its_split():
    runs = pd.concat([RUNS, pd.DataFrame([ran("whales", s) for s in (1, 2)])])
    facts = {"whales": {"complexity": "demo", "category": "Audio"}}
    text = words(page(runs=runs, facts=facts, incomplete="fail"))
    assert "50.0 ± 16.73 comp. · 2 seeds 2 incomplete seeds (2 ungraded submissions)" in text
    assert "whales demo ? ?" in text.split("Medal matrix")[-1]


def test_without_failures_it_says_so():
    assert "None: every run completed" in words(page(GRADES[:3], RUNS[:3]))


def test_run_conditions_are_stated():
    text = words(page(conditions={"g": {"Network": "gateway only"}})).split("Run conditions")[1]
    for stated in ("process", "v1", "10 min", "0123abcd", "gateway only", "2026-01-01 00:10 UTC"):
        assert stated in text


def test_durations_are_stated():
    assert "12 min 34 s" in words(page())
    assert 'id="durations"' not in page(runs=None)


def test_human_percentiles_are_shown_where_known():
    points = [1 - step / 20 for step in range(21)]
    assert "95 %" in words(page(percentiles={"cactus": points}))


def snapshots(*rows, group="g", agent="baseline"):
    """Rows of the table of snapshots: (competition, seed, hours, score)."""
    return pd.DataFrame(
        [
            {
                "run_group": group,
                "run_id": f"{group}-{agent}-{competition}-{seed}",
                "competition_id": competition,
                "seed": seed,
                "agent": agent,
                "at_seconds": 3600.0 * hours,
                "score": score,
                "any_medal": medal_for(score, THRESHOLDS.get(competition, HIGHER)) is not None,
            }
            for competition, seed, hours, score in rows
        ]
    )


def calls(*rows, group="g", agent="baseline", model="model-a"):
    """Rows of the table of usage: (competition, seed, dollars)."""
    return pd.DataFrame(
        [
            {
                "run_group": group,
                "run_id": f"{group}-{agent}-{competition}-{seed}",
                "competition_id": competition,
                "seed": seed,
                "model": model,
                "input_tokens": 1_000_000,
                "output_tokens": 5_000,
                "cost_usd": dollars,
                "latency_seconds": 2.0,
                "started_at": "2026-01-01T00:00:00+00:00",
            }
            for competition, seed, dollars in rows
        ]
    )


SNAPSHOTS = snapshots(
    ("cactus", 1, 0.5, 0.6),
    ("cactus", 1, 3, 0.95),
    ("cactus", 2, 2, 0.75),
    ("diabetes", 1, 1, 0.9),
    ("diabetes", 2, 1, 1.0),
)
USAGE = calls(("cactus", 1, 1.25), ("cactus", 1, 0.75), ("diabetes", 1, 4.0))


def test_medal_rates_over_time_are_drawn_and_told():
    html = page(snapshots=SNAPSHOTS)
    text = words(html).split("Any medal over time")[-1]
    assert "Agent Split 1 h 2 h 3 h" in text
    assert "baseline Demo 0.0 ± 0.0 25.0 ± 25.0 50.0 ± 0.0" in text
    assert html.count('<polyline class="line l0"') == 1 + 4, "a line of rates, and one of scores a run"
    assert 'id="time"' not in page()


def test_cost_is_told_by_run_and_by_medal():
    text = words(page(usage=USAGE)).split("Calls of language models")[1]
    assert "2 of 4 3 3,000,000 15,000 $6.00 $3.00 1,507,500 $2.00 1,005,000" in text
    assert "cactus g 1 model-a 2 2,000,000 10,000 $2.00" in text
    assert 'id="cost"' not in page()


def test_all_does_not_repeat_the_only_split_that_was_run():
    grades = pd.DataFrame([graded("cactus", s, 0.95, complexity="low") for s in (1, 2)])
    text = words(page(grades, None, snapshots=SNAPSHOTS))
    assert "Share of competitions (low)" in text
    assert not re.search(r"baseline All \d", text)


def test_several_attempts_are_told_as_pass_at_k():
    text = words(page()).split("Several attempts")[1]
    assert "k = 1 k = 2" in text
    assert "75.0 [50, 100] 100.0 [100, 100]" in text
    assert "mean 0.85, best of 2 0.95" in words(page())
    assert "Several attempts" not in words(page(GRADES.iloc[[0, 2]], None))


def test_the_summary_in_markdown_has_the_same():
    text = render_markdown(GRADES, RUNS, thresholds=THRESHOLDS, snapshots=SNAPSHOTS, usage=USAGE)
    assert "| baseline | demo | 0.0 ± 0.0 | 25.0 ± 25.0 | 50.0 ± 0.0 |" in text
    assert "| baseline | 2 | 3,000,000 | 15,000 | $6.00 | $3.00 | $2.00 |" in text
    assert r"| baseline | demo | 75.0 \[50, 100\] | 100.0 \[100, 100\] |" in text


def test_what_backends_record_of_a_run_is_a_condition():
    machine = {"hardware": "Linux, 64 cores", "package_version": "0.1.0", "git_commit": "commit 0a1b2c"}
    runs = RUNS.assign(network="gateway only", image_digest="sha256:0123", cpus=8, memory_bytes=64 << 30, **machine)
    text = words(page(runs=runs)).split("Run conditions")[1]
    for stated in (
        "Network gateway only",
        "Image digest sha256:0123",
        "Processors 8",
        "Memory limit 64 GiB",
        "Run on Linux, 64 cores",
        "Run with mlebench-pipeline 0.1.0",
        "Source of the runs commit 0a1b2c",
    ):
        assert stated in text


def test_groups_stand_side_by_side():
    grades = pd.DataFrame([graded("cactus", s, 0.95, group=g) for g in ("first", "second") for s in (1, 2)])
    view = build_view(grades)
    assert [series.label for series in view.series] == ["baseline · first", "baseline · second"]
    assert "baseline · second" in words(page(grades, None))


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("competition", ["cactus", "diabetes"])
def test_scores_that_are_no_finite_number_do_not_break_the_page(score, competition):
    assert number(score) in words(page(pd.DataFrame([graded(competition, 1, score)]), None))


def test_a_group_without_grades_still_has_a_page():
    empty = GRADES.iloc[:0]
    assert "0 competitions" in words(page(empty, None))
    assert "0 competitions" in words(page(empty, RUNS.iloc[:0]))
    assert render_markdown(empty).startswith("# ")
    assert medal_table(empty).rows == []


def test_only_ungraded_runs_still_have_a_page():
    assert "not graded" in words(page(GRADES.iloc[:0]))


def test_tables_read_back_from_parquet_give_the_same_page(tmp_path):
    GRADES.to_parquet(tmp_path / "grades.parquet")
    RUNS.to_parquet(tmp_path / "runs.parquet")
    again = page(
        pd.read_parquet(tmp_path / "grades.parquet"), pd.read_parquet(tmp_path / "runs.parquet"), generated_at=MOMENT
    )
    assert again == page(generated_at=MOMENT)


# --- Nothing from outside, nothing to the outside ---


def test_the_page_asks_the_network_for_nothing():
    document = Document(page())
    for target in document.attributes("src", "href", "xlink:href", "action", "srcset", "poster"):
        assert target.startswith(("#", "data:"))
    assert not re.search(r"url\(|@import|https?://", page())
    assert not [tag for tag, _ in document.elements if tag in ("iframe", "object", "embed", "img", "form")]


def test_the_browser_is_told_to_run_our_script_only():
    html = page()
    policy = next(v for v in Document(html).attributes("content") if "script-src" in v)
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert f"<script>{SCRIPT}</script>" in html


@pytest.mark.parametrize("evil", EVIL)
def test_whatever_agents_write_stays_text(evil):
    grades = pd.DataFrame(
        [
            graded(evil, 1, 0.95, agent=evil, group=evil, complexity=evil, category=evil),
            graded(
                evil, 2, None, outcome="invalid", message=evil, agent=evil, group=evil, complexity=evil, category=evil
            ),
            graded(
                evil,
                3,
                None,
                outcome="failed",
                message=evil * 100,
                agent=evil,
                group=evil,
                complexity=evil,
                category=evil,
            ),
            graded("plain", 1, 0.1, agent="plain", group=evil),
        ]
    )
    times = snapshots((evil, 1, 0.2, 0.9), (evil, 1, 2, 0.95), group=evil, agent=evil)
    usage = calls((evil, 1, 0.5), group=evil, agent=evil, model=evil)
    runs = pd.DataFrame(
        [
            ran(evil, s, agent=evil, group=evil, status=evil, backend=evil, code_fingerprint=evil, message=evil)
            for s in (1, 2)
        ]
    )
    options = {
        "thresholds": {evil: LOWER},
        "titles": {evil: "Title " + evil},
        "conditions": {evil: {evil: evil}},
        "title": evil,
        "split_sizes": {evil: 3},
        "snapshots": times,
        "usage": usage,
    }
    html = page(grades, runs, **options)
    document = Document(html)
    assert [tag for tag, _ in document.elements].count("script") == 1
    harmless = Document(page(snapshots=SNAPSHOTS, usage=USAGE))
    assert {tag for tag, _ in document.elements} <= {tag for tag, _ in harmless.elements} | {
        "details",
        "summary",
        "pre",
        "tspan",
    }
    assert not [name for _, attrs in document.elements for name in attrs if name.startswith("on")]
    assert all(target.startswith(("#", "data:")) for target in document.attributes("href", "src"))
    assert evil in document.text  # shown as it was written


def test_control_characters_and_terminal_colours_are_not_passed_on():
    assert clean("\x1b[31mred\x1b[0m\x00\u202egnp.exe\nnext") == "red\ufffd\ufffdgnp.exe\nnext"
    grades = pd.DataFrame([graded("cactus", 1, None, outcome="invalid", message="\x1b]0;title\x07", agent="a\x1b[2Jb")])
    for text in (page(grades, None), render_markdown(grades), str(medal_table(grades))):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)


def test_a_message_of_megabytes_does_not_bloat_the_page():
    grades = pd.DataFrame([graded("cactus", 1, None, outcome="invalid", message="x" * 5_000_000)])
    assert len(page(grades, None)) < 100_000


# --- In a browser ---


class Browser:
    """A headless Chromium, driven over its debugging protocol; keeps what it complains about and asks for."""

    def __init__(self, home):
        from websockets.sync.client import connect

        options = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
        options += " --disable-component-update --disable-quic --remote-debugging-port=0"
        command = ["chromium", *options.split(), f"--user-data-dir={home}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port_file = home / "DevToolsActivePort"
            self.wait_for(lambda: port_file.exists() and "/" in port_file.read_text())
            port = port_file.read_text().split()[0]
            tabs = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30).read())
            address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            self.socket = connect(address, max_size=None, proxy=None)
        except BaseException:
            self.close()
            raise
        self.events, self.count = [], 0
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.terminate()
        self.process.wait(30)

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the browser does not get there"
            time.sleep(0.05)

    def call(self, method, **params):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=60))
            if message.get("id") == self.count:
                return message["result"]
            self.events.append(message)

    def run(self, script):
        """The value of a JavaScript expression in the page."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def open(self, path, width):
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for(lambda: self.run("location.protocol + document.readyState") == "file:complete")

    @property
    def complaints(self):
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self.events if event["method"] in kinds]

    @property
    def requests(self):
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


@pytest.fixture
def file(tmp_path):
    grades = [
        graded(f"a-rather-long-competition-name-{n}", s, 0.05 * n + s / 100) for n in range(20) for s in (1, 2, 3)
    ]
    grades += [graded("evil", 1, None, outcome="invalid", message=text, agent=text) for text in EVIL]
    path = tmp_path / "report.html"
    names = [f"a-rather-long-competition-name-{n}" for n in range(20)]
    times = [(name, s, hours, 0.04 * hours) for name in names for s in (1, 2, 3) for hours in (0.5, 3, 20)]
    options = {"snapshots": snapshots(*times), "usage": calls(*((name, 1, 0.5) for name in names))}
    points = {name: [1 - n / 20 for n in range(21)] for name in ("cactus", *names)}
    path.write_text(page(pd.DataFrame(grades), RUNS, percentiles=points, **options), "utf-8")
    return path


@pytest.mark.service("chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it_without_complaint_request_or_sideways_scrolling(browser, file, width):
    browser.open(file, width)
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith("data:,")] == [file.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('#matrix .chip.gold').length") > 0
    assert browser.run("document.querySelector('.rates-over-time polyline').getBoundingClientRect().width") > width / 2
    sizes = "[...document.querySelectorAll('td, th, p, .label')].map((e) => parseFloat(getComputedStyle(e).fontSize))"
    assert browser.run(f"Math.min(...{sizes})") >= 12


@pytest.mark.service("chromium")
def test_a_browser_prints_it_with_heads_on_every_page(browser, file):
    browser.open(file, 1280)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[PREFERS_DARK])
    # Chromium repeats the text of a head where a table goes on, but nothing that is a box of its own.
    kinds = "[...document.querySelectorAll('thead button')].map((head) => getComputedStyle(head).display)"
    assert set(browser.run(kinds)) == {"contents"}
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "paper is white"
    for hidden in ("nav", ".filter"):
        assert browser.run(f"document.querySelector('{hidden}').offsetHeight") == 0
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    pdf = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 3


@pytest.mark.service("chromium")
def test_a_browser_shows_it_light_and_dark(browser, file):
    browser.open(file, 1280)
    seen = {}
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{**PREFERS_DARK, "value": scheme}])
        for what in ("color", "backgroundColor"):
            seen[scheme, what] = browser.run(f"getComputedStyle(document.body).{what}")
    browser.call("Emulation.setEmulatedMedia", features=[])
    luminance = {key: sum(map(int, re.findall(r"\d+", value)[:3])) for key, value in seen.items()}
    assert luminance["light", "backgroundColor"] > 700 > 200 > luminance["light", "color"]
    assert luminance["dark", "backgroundColor"] < 200 < 600 < luminance["dark", "color"]


@pytest.mark.service("chromium")
def test_a_browser_sorts_and_filters_tables(browser, file):
    browser.open(file, 1280)
    column = "[...document.querySelectorAll('#all tbody tr')].map((row) => row.cells[4].textContent)"
    button = "document.querySelectorAll('#all thead button')[4]"
    for order in (1, -1):
        browser.run(f"{button}.click()")
        scores = [float(text) for text in browser.run(column) if text != "–"]
        assert scores == sorted(scores, reverse=order < 0)
        assert browser.run(column)[-1] == "–"  # what has no score comes last either way
    browser.run("var box = document.querySelector('[data-filter=all]'); box.value = 'SILVER name-16'; undefined")
    browser.run("box.dispatchEvent(new Event('input'))")
    shown = (
        "[...document.querySelectorAll('#all tbody tr')].filter((row) => row.offsetHeight).map((row) => row.innerText)"
    )
    rows = browser.run(shown)
    assert rows
    assert all("silver" in row and "name-16" in row for row in rows)
    assert browser.run("document.getElementById('all-count').textContent").startswith(f"{len(rows)} of ")
    browser.run("box = document.querySelector('[data-filter=cards]'); box.value = 'name-16'; undefined")
    browser.run("box.dispatchEvent(new Event('input'))")
    cards = "[...document.querySelectorAll('#cards article')].filter((card) => card.offsetHeight).length"
    assert browser.run(cards) == 1


# --- Scales ---


@pytest.mark.parametrize("thresholds", [HIGHER, LOWER])
@pytest.mark.parametrize("share", [-50, -1, -0.1, 0, 0.3, 0.5, 0.6, 0.75, 0.9, 1, 1.2, 9])
def test_a_mark_lies_in_the_band_of_the_medal_it_earned(thresholds, share):
    score = thresholds.median + share * (thresholds.gold - thresholds.median)
    bands = {None: (0, MEDAL_SCALE["bronze"]), "bronze": (MEDAL_SCALE["bronze"], MEDAL_SCALE["silver"])}
    bands |= {"silver": (MEDAL_SCALE["silver"], MEDAL_SCALE["gold"]), "gold": (MEDAL_SCALE["gold"], 100)}
    low, high = bands[medal_for(score, thresholds)]
    place = medal_position(score, thresholds)
    assert low < place < high
    assert (place > MEDAL_SCALE["median"]) == above_median(score, thresholds)


@pytest.mark.parametrize("thresholds", [HIGHER, LOWER])
def test_better_is_to_the_right_on_both_scales(thresholds):
    ascending = [thresholds.median + step / 20 * (thresholds.gold - thresholds.median) for step in range(-60, 60)]
    for at in (lambda s: medal_position(s, thresholds), score_axis(thresholds, ascending).at):
        places = [at(score) for score in ascending]
        assert places == sorted(places)


def test_where_all_medals_ask_for_the_same_score_the_scales_still_work():
    cactus = Thresholds(gold=1.0, silver=1.0, bronze=1.0, median=0.9991, teams=1221, lower_is_better=False)
    assert medal_position(1.0, cactus) > MEDAL_SCALE["gold"]
    assert MEDAL_SCALE["median"] < medal_position(0.9995, cactus) < MEDAL_SCALE["bronze"]
    flat = Thresholds(gold=0.0, silver=0.0, bronze=0.0, median=0.0, teams=3, lower_is_better=True)
    assert 0 < medal_position(5.0, flat) < MEDAL_SCALE["median"]
    assert math.isfinite(score_axis(flat, []).at(0.0))


def test_the_linear_axis_shows_all_thresholds_and_leaves_outliers_outside():
    axis = score_axis(LOWER, [0.15, 1e9])
    assert all(0 <= axis.at(getattr(LOWER, name)) <= 100 for name in MEDAL_SCALE)
    assert 0 <= axis.at(0.15) <= 100
    assert axis.at(1e9) < 0


# --- Text ---


def test_the_markdown_summary_has_rates_matrix_and_failures():
    text = render_markdown(GRADES, RUNS, thresholds=THRESHOLDS, title="Results")
    assert text.startswith("# Results\n")
    assert "| 75.0 ± 25.0 |" in text
    assert "| cactus | G | B |\n| diabetes | S | × |" in text
    assert "- diabetes, baseline, seed 2: time limit reached, invalid submission: the column id is missing" in text
    assert "trained models: diabetes" in text


def test_markdown_from_agents_stays_text():
    message = "a | b\n# head [link](javascript:x) <b>bold</b> `code`"
    text = render_markdown(pd.DataFrame([graded("cactus", 1, None, outcome="invalid", message=message)]))
    assert r"a \| b \# head \[link\]\(javascript:x\) &lt;b&gt;bold&lt;/b&gt; \`code\`" in text


def test_the_terminal_table_has_text_and_a_kind_to_style_by():
    table = medal_table(GRADES, RUNS, thresholds=THRESHOLDS)
    assert table.columns == ["competition", "split", "seed 1", "seed 2"]
    (cactus, split, cells), (_, _, others) = table.rows
    assert (cactus, split) == ("cactus", "demo")
    assert [(cell.text, cell.kind) for cell in cells] == [("0.95 gold", "gold"), ("0.75 bronze", "bronze")]
    assert [(cell.text, cell.kind) for cell in others] == [("0.15 silver", "silver"), ("invalid submission", "invalid")]
    assert table.model_leaderboards == ["diabetes"]


def test_the_terminal_table_has_a_dash_where_a_seed_did_not_run():
    table = medal_table(GRADES.iloc[[0, 1, 2]])
    assert (table.rows[1][2][1].text, table.rows[1][2][1].kind) == ("–", None)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123456789, "0.12346"), (3971366.0, "3,971,366"), (1.0, "1"), (-0.5, "−0.5"), (None, "–"), (math.nan, "NaN")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.42, "0.4 s"),
        (9.97, "10 s"),
        (59.6, "1 min"),
        (3599.9, "1 h"),
        (11100, "3 h 5 min"),
        (86400, "24 h"),
        (None, "–"),
    ],
)
def test_durations_have_two_units(seconds, text):
    assert duration(seconds) == text


def test_mean_without_standard_error():
    assert mean_sem(0.5, math.nan) == "50.0"
