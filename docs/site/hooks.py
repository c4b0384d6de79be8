"""What `mkdocs` calls while it makes the site: pages that are generated, and pages that lie outside of docs/."""

from __future__ import annotations

import re
from typing import Any

import generated
import links
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

# Not loaded from elsewhere, and so not drawn: the site has the picture of the layers in its place.
DIAGRAM = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)
PICTURE = "![The layers of the package](layers.svg)\n"
LOADS = re.compile(
    r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//[^>]*>|<link[^>]*stylesheet[^>]* href=\"(?:https?:)?//[^>]*>"
)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made of the package's own data, and those that lie elsewhere in the repository."""
    pages = {name: make() for name, make in generated.PAGES.items()}
    pages |= {name: (links.ROOT / path).read_text(encoding="utf-8") for path, name in links.ELSEWHERE.items()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Let links lead to pages of the site, and give the page of a rule its manual page and codes."""
    name = page.file.src_uri
    text = DIAGRAM.sub(PICTURE, links.rewritten(markdown, name))
    return text + generated.appendix(name)


def on_post_page(output: str, page: Any, **_more: Any) -> str:
    """Refuse a page that loads something from elsewhere, such as a script or a font."""
    for tag in LOADS.findall(output):
        raise PluginError(f"{page.file.src_uri} loads from elsewhere: {tag}")
    return output
