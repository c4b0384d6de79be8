"""What the site makes of the package's own data is complete, and its links lead to pages of the site."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pages
import pytest

from bench.structure import PACKAGE, files, modules_of
from graphmend_hook.product.commands.examples import example_of
from graphmend_hook.product.commands.rules import codes
from graphmend_hook.rules.codes import TOLD
from graphmend_hook.rules.order import ORDER
from graphmend_hook.settings.config import SETTINGS

sys.path.insert(0, str(pages.ROOT / "docs" / "site"))
import docstrings
import generated
import layers
import links
import tables

CODES = codes()


def test_every_code_has_its_remedy() -> None:
    text = generated.codes_page()
    for code in CODES.values():
        entry = text.partition(f"\n### {code.code}\n")[2].partition("\n##")[0]
        assert entry.strip(), code
        assert code.remedy in entry, code
        example = example_of(code.code)
        assert example is None or (example.before in entry and example.after in entry), code


def test_every_setting_has_all_its_names() -> None:
    text = generated.settings_page()
    for setting in SETTINGS:
        entry = text.partition(f"\n## {setting.variable()}\n")[2].partition("\n## ")[0]
        for name in (setting.option(), f"graphmend_{setting.name}", setting.kind.value):
            assert name in entry, setting.name
        assert "](docs/" not in entry


@pytest.mark.parametrize("rule", ORDER, ids=lambda rule: rule.name)
def test_every_rule_has_its_manual_page(rule) -> None:
    text = generated.appendix(f"{rule.name}.md")
    for code in CODES.values():
        assert (f"[{code.code}](codes.md#{code.code.lower()})" in text) == (code.rule == rule.name)
    assert "The native alternative" in text or rule.name == "grad"
    assert generated.appendix("left.md") == ""


@pytest.mark.parametrize(
    ("name", "link", "made"),
    [
        ("index.md", "[a](docs/x.md#y)", "[a](x.md#y)"),
        ("index.md", "![a](docs/screens/x.png)", "![a](screens/x.png)"),
        ("index.md", "[`a/`](sitecustomize_example/README.md)", "[`a/`](sitecustomize.md)"),
        ("where.md", "[`w.py`](../graphmend_hook/w.py)", "`w.py`"),
        ("where.md", "[a](../bench/README.md) [b](where.md#c) [c](#d)", "[a](bench.md) [b](where.md#c) [c](#d)"),
        ("tables.md", "[a](https://b/c.md)", "[a](https://b/c.md)"),
        ("where.md", "```\n[a](../b.py)\n```\n[a](../b.py)", "```\n[a](../b.py)\n```\na"),
    ],
)
def test_links_lead_to_pages_of_the_site(name: str, link: str, made: str) -> None:
    assert links.rewritten(link, name) == made


def test_the_picture_has_the_layers_that_there_are() -> None:
    assert layers.PICTURE.read_text(encoding="utf-8") == layers.picture(), "python docs/site/layers.py makes it anew"


def test_a_layer_imports_only_what_is_below_it() -> None:
    height = {part: number for number, (_, parts) in enumerate(layers.LAYERS) for part in parts}
    assert {part for part in height if not list(PACKAGE.glob(f"{part}*"))} == set()

    def height_of(file: Path) -> int | None:
        within = (number for part, number in height.items() if file.is_relative_to(PACKAGE / part))
        return next(within, height.get(file.stem) if file.parent == PACKAGE else None)

    for file in files():
        own = height_of(file)
        if own is not None and not file.name.startswith("traced") and file.name != "codes.py":
            for other in modules_of(file):
                assert (height_of(other) or own) >= own, (file, other)


def test_the_tables_of_codes_are_those_of_the_package() -> None:
    found = []
    for page in sorted((pages.ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert text == tables.filled(text), (page, "python docs/site/tables.py makes them anew")
        found += re.findall(r"^\| (GM\d{3}-[RT]\d\d) \|", text, re.MULTILINE)
    assert sorted(found) == sorted(code.code for code in CODES.values() if code.rule and code.code not in TOLD)


def test_docstrings_become_lists() -> None:
    text = "What it does.\n\na, b: one thing,\n    or two.\nc: another.\n\nMore: this stays."
    assert (
        docstrings.as_list(text)
        == "What it does.\n\n\n- `a`, `b`: one thing,\nor two.\n- `c`: another.\n\nMore: this stays."
    )
