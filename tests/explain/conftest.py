"""A browser without a window, for the page of `graphmend explain`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")  # as long as it lives, its event loop runs: no test elsewhere could have one
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium here")
    with api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page in a window; it may ask for nothing else, and no script of it may fail."""
    problems: list[str] = []
    tabs = []

    def open_page(path: Path, width: int = 1600, mode: str = "light") -> Any:
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=mode)
        tabs.append(tab)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda message: problems.append(message.text))  # what the page's policy refuses, too
        tab.on("request", lambda request: request.url == path.as_uri() or problems.append(request.url))
        tab.goto(path.as_uri())
        return tab

    yield open_page
    for tab in tabs:
        tab.close()
    assert problems == []
