"""The page of `graphmend explain` in small and large windows, light and dark, with few graphs and with many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from observations import long_page

Open = Callable[..., Any]
# The words that stand on more than one line; what separates paths and names ends a word.
TORN = """() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), torn = [];
    for (let node; (node = texts.nextNode()); ) {
        if (!node.parentElement.checkVisibility() || node.parentElement.closest("script, style, .hidden")) continue;
        for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) torn.push(word[0]);
        }
    }
    return torn;
}"""
# The contrast of each text that is seen with what is behind it, where it is less than 4.5.
FAINT = """() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const light = ([...colours]) => {
        context.clearRect(0, 0, 1, 1);
        for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
        const part = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map(part);
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const behind = (node) => node ? [...behind(node.parentElement), getComputedStyle(node).backgroundColor] : [];
    const contrast = (papers, ink) => {
        const [low, high] = [light(papers), light([...papers, ink])].sort((one, other) => one - other);
        return (high + 0.05) / (low + 0.05);
    };
    const found = [];
    for (const node of document.querySelectorAll("body *")) {
        const isText = [...node.childNodes].some((each) => each.nodeType === Node.TEXT_NODE && each.data.trim());
        if (!node.checkVisibility() || node.closest("script, style, option")) continue;
        const number = contrast(behind(node), getComputedStyle(node).color);
        if (isText && number < 4.5) found.push([node.className, node.textContent.slice(0, 40), number]);
        const isShape = node.matches(".cell");
        if (isShape && contrast(behind(node.parentElement), getComputedStyle(node).backgroundColor) < 3) found.push([node.className]);
        if (node.placeholder && contrast(behind(node), getComputedStyle(node, "::placeholder").color) < 4.5) found.push(["placeholder"]);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def long_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """By the number of their graphs."""
    return {graphs: long_page(graphs, tmp_path_factory.mktemp("long")) for graphs in (4, 180, 1000)}


def assert_fits(tab: Any, width: int) -> None:
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    too_wide = "ids => ids.filter((id) => { const each = document.getElementById(id); return each.scrollWidth > each.clientWidth; })"
    assert tab.evaluate(too_wide, ["list", "lines"]) == []


def open_all(tab: Any) -> None:
    """A break, a graph, the first of what was compiled, and callers."""
    for each in tab.locator(".cause:not([open]) > summary").all():
        each.click()
    tab.locator(".callers > summary").first.click()
    if not tab.locator(".region").first.evaluate("each => each.open"):
        tab.locator(".region > summary").first.click()
    for made in (".callers ol", ".region .row .link"):  # when what is around them was opened
        tab.locator(made).first.wait_for()
    tab.locator("[role=option]").last.click()
    tab.locator(".break .open").first.click()


@pytest.mark.parametrize("width", [480, 900, 1600])
@pytest.mark.parametrize("graphs", [4, 180, 1000])
def test_it_fits_the_window(long_pages: dict[int, Path], opened: Open, graphs: int, width: int) -> None:
    tab = opened(long_pages[graphs], width)
    assert_fits(tab, width)
    open_all(tab)
    assert tab.locator("#lines tr[aria-current=location]").is_visible()
    assert_fits(tab, width)


@pytest.mark.parametrize("width", [480, 900, 1600])
def test_no_word_is_torn(long_pages: dict[int, Path], opened: Open, width: int) -> None:
    tab = opened(long_pages[180], width)
    open_all(tab)
    assert tab.evaluate(TORN) == []


def test_where_a_line_may_end(long_pages: dict[int, Path], opened: Open) -> None:
    tab = opened(long_pages[4])
    long = "_".join(["of"] * 20)
    for text in (
        *("package/|module.py:12", "two words, a_name", "a.|name.|of", "a_name == another_name.|that_is", "torch 2.13"),
        *("f(|x, g(|'y'))", "C:\\|folder\\|file.pyi", long.replace("_", "_|"), f"short_name {long.replace('_', '_|')}"),
    ):
        ends = "text => [...breakable(text).childNodes].map((each) => each.data ?? '|').join('')"
        assert tab.evaluate(ends, text.replace("|", "")) == text


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("width", [480, 1600])
def test_every_text_can_be_read(long_pages: dict[int, Path], opened: Open, mode: str, width: int) -> None:
    tab = opened(long_pages[180], width, mode)
    open_all(tab)
    for kind in (".t-k", ".t-s", ".t-c", ".t-m", ".t-f", ".t-b", ".line.remaining", ".shade-0", ".shade-3"):
        assert tab.locator(f"{kind}:visible").count(), kind
    assert tab.evaluate(FAINT) == []
    tab.locator(".break.removed .open").first.click()
    assert tab.locator(".line.removed").is_visible()
    assert tab.evaluate(FAINT) == []


def test_each_of_many_graphs_is_reached_by_keys(long_pages: dict[int, Path], opened: Open) -> None:
    tab = opened(long_pages[1000], 480)
    strip = tab.get_by_role("listbox", name="graphs without the hook")
    assert strip.get_by_role("option").count() == 1000
    box = strip.bounding_box()
    assert box["height"] < 250  # the summary of a thousand graphs takes a part of the window
    strip.locator("[tabindex='0']").focus()
    for key, graph in [("ArrowRight", 2), ("End", 1000), ("ArrowRight", 1000), ("ArrowLeft", 999), ("Home", 1)]:
        tab.keyboard.press(key)
        assert f"graph {graph} of 1000" in tab.locator("#chosen").inner_text()
    assert strip.locator("[tabindex='0']").count() == strip.locator("[aria-selected=true]").count() == 1
    tab.locator("#chosen button").click()
    assert tab.locator("#source-title").inner_text() == "step_0_of_a_program_with_many_small_functions_in_it"


def test_long_lists_are_whole_when_they_are_asked_for(long_pages: dict[int, Path], opened: Open) -> None:
    tab = opened(long_pages[1000])
    left = tab.locator(".break.remaining:visible")
    assert left.count() == 20
    tab.get_by_role("button", name="Show all 167").click()
    assert left.count() == 167
    assert tab.locator(".region").count() == 20
    tab.get_by_label("Filter").fill("step_499_")
    assert tab.locator(".region").count() == 1
    assert tab.locator(".break:visible").count() == 1
    tab.get_by_label("Filter").fill("")
    tab.get_by_role("button", name="Show all 500").click()
    assert tab.locator(".region").count() == 500
