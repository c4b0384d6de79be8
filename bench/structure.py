"""The structure of the package: who imports whom, as a picture, and how many lines each part has.

``python -m bench.structure`` prints `docs/structure.md`; imports within functions count, those for types alone do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "graphmend_hook"
HEAD = """# The parts, and who imports whom

`python -m bench.structure` makes this page. An arrow is an import, wherever in the file; a box is a file or a folder of
the package, with its lines. No file imports itself through others (`tests/rewrite/test_layers.py`).
"""


def files(package: Path = PACKAGE) -> list[Path]:
    """The modules of the package; what has another name than one is a text that it shows."""
    return sorted(file for file in package.rglob("*.py") if file.stem.isidentifier())


def modules_of(file: Path, types: bool = False) -> set[Path]:
    """The files of its package that `file` imports, wherever in it; with `types` those for the sake of types too."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = set() if types else {node for block in blocks for node in ast.walk(block)}
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node not in for_types:
            base = file.parents[node.level - 1].joinpath(*(node.module or "").split(".") if node.module else ())
            found.update(filter(None, (_file_of(base, alias.name) for alias in node.names)))
    return found


def _file_of(base: Path, name: str) -> Path | None:
    """The file that ``from base import name`` takes the name from."""
    places = (base / f"{name}.py", base / name / "__init__.py", base.with_suffix(".py"), base / "__init__.py")
    return next((place for place in places if place.exists()), None)


def part_of(file: Path) -> str:
    """The file or folder of the package that the file is, or is in; of the large folders the room in it."""
    room, *inner = file.relative_to(PACKAGE).parts
    divided = room in ("engine", "product", "rules") and len(inner) > 1
    return f"{room}/{inner[0]}" if divided else room.removesuffix(".py")


def _name(part: str) -> str:
    return part.replace("/", "_")


def page(files: Mapping[Path, set[Path]]) -> Iterator[str]:
    """The lines of the page, of files and what each imports."""
    lines: dict[str, int] = {}
    arrows: set[tuple[str, str]] = set()
    for file, imported in files.items():
        part = part_of(file)
        lines[part] = lines.get(part, 0) + len(file.read_text(encoding="utf-8").splitlines())
        arrows |= {(part, part_of(other)) for other in imported} - {(part, part)}
    yield HEAD
    yield "```mermaid\ngraph TD"
    yield from (f'  {_name(part)}["{part}, {count}"]' for part, count in sorted(lines.items()))
    yield from (f"  {_name(part)} --> {_name(other)}" for part, other in sorted(arrows))
    yield "```\n"
    yield "| part | files | lines |\n|---|---|---|"
    for part, count in sorted(lines.items()):
        yield f"| `{part}` | {sum(part_of(file) == part for file in files)} | {count} |"
    yield f"| all | {len(files)} | {sum(lines.values())} |"


if __name__ == "__main__":
    print("\n".join(page({file: modules_of(file) for file in files()})))
