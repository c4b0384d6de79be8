"""The page of `graphmend explain` in a browser: what is where, and what opens what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from observations import broken, joined, mended, observed, region, written

Open = Callable[..., Any]
EVIL = "</script><img src=x onerror=alert(1)>"
BLOCK = [
    "import logging, torch",
    "logger = logging.getLogger(__name__)",
    "class Block(torch.nn.Module):",
    "    def forward(self, x):",
    f"        x = x + 1  # {EVIL}",
    *["        x = x - 2"] * 60,  # the function is longer than a window
    '        logger.warning("in a block")',
    "        return x * 2",
]
MODEL = [
    "class Model(torch.nn.Module):",
    "    def forward(self, x):",
    "        x = self.one(x)",
    "        return self.two(x).view(-1)",
]
LOG = len(BLOCK) - 1
ONE, TWO = len(BLOCK) + 3, len(BLOCK) + 4  # the calls of the blocks


@pytest.fixture
def page(write: Callable[[str, str], Path], tmp_path: Path) -> Path:
    """Three graphs become one; the break in a block is gone, one in the model remains, and one is new."""
    file = str(write("model.py", "\n".join([*BLOCK, *MODEL])))
    first = ([(file, ONE, "forward"), (file, 5, "forward")], 1)
    second = ([(file, ONE, "forward"), (file, LOG + 1, "forward")], 1)
    third = ([(file, TWO, "forward"), (file, 5, "forward")], 2)
    log = [broken([(file, line, "forward"), (file, LOG, "forward")]) for line in (ONE, TWO)]
    kept = broken([("train.py", 7, "run"), (file, TWO, "forward")], "Kept", f"Explanation: {EVIL}")
    new = broken([(file, 5, "forward")], "New")
    before = observed([region("Model", file, 11, [[first], [second], [third]])], [*log, kept])
    after = observed([region("Model", file, 11, [[first, second, third]])], [kept, new])
    site = mended("defer", "Block.forward", LOG)
    return written(joined(before, after, {file: [site]}, "train.py", EVIL), tmp_path)


def test_breaks_come_first_by_cause(page: Path, opened: Open) -> None:
    tab = opened(page)
    titles = tab.locator("main h2").all_inner_texts()
    assert titles == ["Breaks: 3", "Graphs: 3 without the hook, 1 with it"]
    assert [text.split()[0] for text in tab.locator("#breaks h3").all_inner_texts()] == ["remaining", "new", "removed"]
    gone = tab.locator(".break.removed")
    assert "met 2 times without the hook, 0 with it" in gone.inner_text()
    gone.get_by_text("Called from 2 places").click()
    gone.locator("ol").first.wait_for()  # they are made when they are opened
    callers = gone.locator("ol").all_inner_texts()
    assert [text.split("/")[-1] for text in callers] == [f"model.py:{line} in Model.forward" for line in (ONE, TWO)]
    gone.locator("ol button").first.click()
    assert tab.locator("#lines tr[aria-current=location]").get_attribute("data-line") == str(ONE)


def test_what_it_was_run_with(page: Path, opened: Open) -> None:
    about = " ".join(opened(page).locator("#about").inner_text().split())
    for text in ("command train.py", "python 3.11.7", "torch 2.13.0+cpu", "backend inductor"):
        assert text in about


@pytest.mark.parametrize("width", [480, 900, 1600])
def test_a_break_opens_at_its_line(page: Path, opened: Open, width: int) -> None:
    tab = opened(page, width)
    button = tab.locator(".break.removed .open")
    button.focus()
    tab.keyboard.press("Enter")
    assert tab.locator("#source-title").inner_text() == "Block.forward"
    row = tab.locator("#lines tr[aria-current=location]")
    assert row.get_attribute("data-line") == str(LOG)
    box, lines = row.bounding_box(), tab.locator("#lines").bounding_box()
    assert lines["y"] <= box["y"] < box["y"] + box["height"] <= min(lines["y"] + lines["height"], 900)
    assert tab.locator("#lines").evaluate("lines => lines.scrollTop") > 0
    assert tab.evaluate("document.activeElement.id") == "source"
    tab.keyboard.press("Escape")
    assert button.evaluate("each => each === document.activeElement")


def test_what_is_written_stands_beside_what_runs(page: Path, opened: Open) -> None:
    tab = opened(page)
    tab.locator(".break.removed .open").click()
    tops = "rows => rows.map((row) => [...row.cells].map((cell) => cell.getBoundingClientRect().top))"
    for of_a_row in tab.locator("#lines tbody tr").evaluate_all(tops):
        assert len(of_a_row) == 4
        assert len(set(of_a_row)) == 1
    row = tab.locator("#lines tr[aria-current=location]")
    assert [text.strip() for text in row.locator(".code").all_inner_texts()] == ['logger.warning("in a block")'] * 2
    added = tab.locator("#lines .added").first
    assert added.locator(".runs").inner_text().strip() == "if GM.tracing():"
    assert added.locator(".written").inner_text() == ""

    tab.locator(".break.remaining .open").click()
    assert tab.locator("#lines .written").count() == 3
    assert tab.locator("#lines .runs").count() == 0
    assert "nothing in it is mended" in tab.locator("#source-note").inner_text()


def test_code_is_coloured(page: Path, opened: Open) -> None:
    tab = opened(page)
    tab.locator(".break.removed .open").click()
    colour = "each => getComputedStyle(each).color"
    seen = {tab.locator("#lines .written").first.evaluate(colour)}
    tokens = [("k", "def"), ("f", "forward"), ("c", f"# {EVIL}"), ("s", '"in a block"'), ("m", "1")]
    for name, text in tokens:
        token = tab.locator(f"#lines .written .t-{name}").get_by_text(text, exact=True).first
        seen.add(token.evaluate(colour))
    assert len(seen) == 1 + len(tokens)


def test_in_a_narrow_window_it_stands_below(page: Path, opened: Open) -> None:
    tab = opened(page, 480)
    tab.locator(".break.removed .open").click()
    for kind, sides in {"same": (True, False), "moved": (False, True), "added": (False, True)}.items():
        line = tab.locator(f"#lines .{kind}").first
        assert (line.locator(".written").is_visible(), line.locator(".runs").is_visible()) == sides, kind
    assert tab.locator("#lines .added .sign").first.inner_text() == "+"


def test_the_filter(page: Path, opened: Open) -> None:
    tab = opened(page)

    def assert_shown(*states: str) -> None:
        assert [each for each in ("remaining", "new", "removed") if tab.locator(f".break.{each}").is_visible()] == [
            *states
        ]
        assert tab.locator(".cause:visible").count() == len(states)
        assert tab.locator("#shown").inner_text() == f"{len(states)} of 3 breaks shown"

    assert_shown("remaining", "new", "removed")
    for words, found in {"logger WARNING": ["removed"], "train.py:7": ["remaining"], "nowhere": []}.items():
        tab.get_by_label("Filter").fill(words)  # of the statement, of a caller
        assert_shown(*found)
    tab.get_by_label("Filter").fill("")
    tab.get_by_label("removed (1)").uncheck()
    assert_shown("remaining", "new")
    tab.get_by_label("new (1)").uncheck()
    assert_shown("remaining")


def test_what_comes_from_the_program_is_text(page: Path, opened: Open) -> None:
    tab = opened(page)
    tab.locator(".break.removed .open").click()
    for place in ("#lines", "#about", "#breaks"):
        assert EVIL in tab.locator(place).inner_text(), place
    assert tab.locator("img").count() == 0


def test_the_page_refuses_any_other_script(page: Path, opened: Open, browser: Any) -> None:
    tab = browser.new_page()
    refused: list[str] = []
    tab.on("console", lambda message: refused.append(message.text))
    tab.goto(page.as_uri())
    tab.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.intruder = true";
        document.body.append(script);
    }""")
    assert tab.evaluate("window.intruder") is None
    tab.close()
    assert "Content Security Policy" in " ".join(refused)


def test_its_colours_can_be_chosen(page: Path, opened: Open) -> None:
    tab = opened(page, mode="dark")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(paper)
    tab.get_by_label("Colours").select_option("light")
    light = tab.evaluate(paper)
    assert dark != light == "rgb(255, 255, 255)"
    tab.get_by_label("Colours").select_option("dark")
    assert tab.evaluate(paper) == dark
