"""Each link of a page leads to a file that is there, and to a heading that it has."""

from __future__ import annotations

import re
from pathlib import Path

import pages
import pytest

LINK = re.compile(r"\[(?:[^][]|\[[^][]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*?) *$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of `page`, as GitHub and the site make them."""
    found: dict[str, int] = {}
    made = set()
    for heading in HEADING.findall(pages.without_blocks(page.read_text(encoding="utf-8"))):
        text = re.sub(r"\]\([^)]*\)", "", heading.lower())
        slug = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        made.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return made


def wrong_links(page: Path) -> list[str]:
    wrong = []
    for target in LINK.findall(pages.without_blocks(page.read_text(encoding="utf-8"))):
        if ":" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        has_anchor = not anchor or (file.suffix == ".md" and file.exists() and anchor in anchors(file))
        if not file.exists() or not has_anchor:
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert not wrong_links(page)


def test_a_wrong_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A *Heading*, in code\n[a](#a-heading-in-code) [b](#b) [c](gone.md) ![d](http://x)\n```\n[e](f)\n```\n"
    )
    assert wrong_links(page) == ["#b", "gone.md"]


def test_every_page_is_in_the_navigation() -> None:
    site = (pages.ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    for page in pages.ROOT.glob("docs/*.md"):
        assert f": {page.name}\n" in site, page
