"""The page of `graphmend explain`, in a real browser without a window."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmend_hook.explaining.join import explain
from graphmend_hook.explaining.page import html

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MODEL = """\
import logging, torch
logger = logging.getLogger(__name__)

class Block(torch.nn.Module):
    def forward(self, x):
        x = x + 1  # </script> is no end
        logger.warning("in a block")
        return x * 2

class Model(torch.nn.Module):
    def forward(self, x):
        x = self.one(x)
        return self.two(x).view(-1)
"""


def observed(
    file: str, graphs: list[list[tuple[list[tuple[str, int, str]], int]]], breaks: list[int]
) -> dict[str, Any]:
    """What `observe` writes: for each graph its calls (traceback and operations), and the lines of breaks."""
    return {
        "regions": [
            {
                "name": "Model",
                "file": file,
                "line": 11,
                "graphs": [[[{"stack": stack, "operations": count} for stack, count in calls] for calls in graphs]],
            }
        ],
        "breaks": [{"kind": "K", "reason": "why <b>", "stack": [[file, line, "f"]]} for line in breaks],
    }


@pytest.fixture
def page(write: Callable[[str, str], Path], tmp_path: Path) -> Path:
    file = str(write("model.py", MODEL))
    first = ([(file, 12, "forward"), (file, 6, "forward")], 1)
    second = ([(file, 12, "forward"), (file, 8, "forward")], 1)
    third = ([(file, 13, "forward"), (file, 6, "forward")], 2)
    before = observed(file, [[first], [second, third]], [7, 13])
    after = observed(file, [[first, second, third]], [13])
    site = {"rule": "defer", "function": "Block.forward", "line": 7, "outcome": "mended", "code": "", "reason": ""}
    module = {"name": "model", "path": file, "status": "mended", "why": "", "sites": [site]}
    found = explain(["train.py"], before, {**after, "report": {"modules": [module], "traced": []}})
    path = tmp_path / "page.html"
    path.write_text(html(found), encoding="utf-8")
    return path


def test_it_needs_nothing_else(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "http" not in text.replace("https://arxiv", "")
    assert text.count("</script>") == 1


@pytest.fixture
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium here")
    with api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def test_in_a_browser(page: Path, browser: Any) -> None:
    errors: list[str] = []
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(page.as_uri())
    assert tab.locator("h2").first.inner_text() == "Model: 2 graphs without the hook, 1 with it"
    bars = tab.locator("summary .bar").first
    assert bars.locator("span").count() == 2
    assert tab.locator("summary .bar").nth(1).locator("span").count() == 1
    assert tab.locator(".break.removed").count() == tab.locator(".break.remaining").count() == 1
    assert "why <b>" in tab.locator(".break.remaining").inner_text()

    tab.get_by_role("button", name="Block.forward").first.click()
    panes = tab.locator("#source pre")
    assert panes.count() == 2
    assert "# </script> is no end" in panes.first.inner_text()
    assert "GM.deferrable" in panes.nth(1).inner_text()
    assert tab.locator("#source .line.removed").inner_text().split(None, 1)[1].startswith("logger.warning")

    tab.get_by_role("button", name="Model.forward").first.click()
    assert tab.locator("#source pre").count() == 1
    assert "Nothing in it is mended." in tab.locator("#source").inner_text()
    if target := os.environ.get("SCREENSHOT"):  # for the docs
        tab.get_by_role("button", name="Block.forward").first.click()
        tab.screenshot(path=target)
    assert errors == []
