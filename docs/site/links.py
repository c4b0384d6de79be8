"""Links of a page in the repository, as links of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Pages of the site that lie outside of docs/, by their place in the repository.
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "sitecustomize_example/README.md": "sitecustomize.md",
    "bench/README.md": "bench.md",
    "bench/results/tables.md": "tables.md",
}
PLACES = {name: path for path, name in ELSEWHERE.items()}
LINK = re.compile(r"(?P<text>!?\[(?:[^][]|\[[^][]*\])*\])\((?P<target>[^)\s]+)\)")
BLOCK = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def rewritten(markdown: str, name: str) -> str:
    """The text of the page `name` of the site, in which links lead to pages of the site.

    A link to a file that is no page, such as a source file, becomes its text.
    """
    place = PLACES.get(name, f"docs/{name}")
    parts = BLOCK.split(markdown)
    parts[::2] = [LINK.sub(lambda link: _on_the_site(link, place), part) for part in parts[::2]]
    return "".join(parts)


def _on_the_site(link: re.Match[str], place: str) -> str:
    target, mark, anchor = link["target"].partition("#")
    if ":" in target or not target:
        return link[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
    inside = path.removeprefix("docs/") if path.startswith("docs/") else ELSEWHERE.get(path)
    return f"{link['text']}({inside}{mark}{anchor})" if inside else link["text"].strip("![]")
