"""Which modules the patterns mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmend_hook.hook.allowlist import Allowlist, PatternSet

BY_NAME = [
    # patterns, names that match, names that do not
    ("transformers", "transformers transformers.models.t5", "transformers_extra transformer my.transformers"),
    ("pkg.sub", "pkg.sub pkg.sub.mod", "pkg pkg.subway pkg.other"),
    ("pkg.*.model_*", "pkg.a.model_b pkg.a.model_b.c", "pkg pkg.a pkg.model_b pkg.a.b.model_c pkg.a.tokens"),
    ("pkg.models.*", "pkg.models pkg.models.a pkg.models.a.b", "pkg pkg.other pkg.models_extra"),
    ("pkg.v?", "pkg.v1 pkg.v1.a", "pkg.v pkg.v10 pkg.v.a"),
    ("pkg?", "pkgs pkgs.a", "pkg pk.s"),
    ("a b.c d.*.e", "a a.b b.c d.x.e", "b d d.x d.e"),
    ("täst.модуль", "täst.модуль täst.модуль.a", "täst tast.модуль"),
]


@pytest.mark.parametrize(("patterns", "inside", "outside"), BY_NAME)
def test_names(patterns: str, inside: str, outside: str) -> None:
    allow = Allowlist(patterns.split())
    for names, expected in ((inside, True), (outside, False)):
        for name in names.split():
            assert allow.covers(name, f"/src/{name}.py") is expected, name
            assert allow.may_cover(name, None) is expected, name


@pytest.mark.parametrize("name", ["transformers.tokenization_utils_base", "transformers.models.t5.tokenization_t5"])
def test_what_no_compiled_function_reaches_is_passed_over_unless_it_is_named(name: str) -> None:
    assert Allowlist(["transformers"]).passes_over(name)
    assert Allowlist(["transformers.*"]).passes_over(name)
    assert not Allowlist(["transformers", name]).passes_over(name)
    assert not Allowlist(["transformers"]).passes_over("transformers.models.t5.modeling_t5")


identifiers = st.from_regex(r"[a-c]{1,2}", fullmatch=True)
dotted = st.lists(identifiers, min_size=1, max_size=4).map(".".join)


@given(pattern=dotted, name=dotted)
def test_a_dotted_name_means_itself_and_what_lies_below(pattern: str, name: str) -> None:
    assert PatternSet([pattern]).matches_name(name) is (name == pattern or name.startswith(pattern + "."))


@given(pattern=st.lists(identifiers | st.just("*"), min_size=1, max_size=4), name=dotted)
def test_a_glob_means_every_name_with_its_segments_at_the_start(pattern: list[str], name: str) -> None:
    segments = name.split(".")
    wanted = pattern[:-1] if len(pattern) > 1 and pattern[-1] == "*" else pattern
    expected = len(segments) >= len(wanted) and all(p in ("*", s) for p, s in zip(wanted, segments, strict=False))
    assert PatternSet([".".join(pattern)]).matches_name(name) is expected


@pytest.mark.parametrize("deny", ["pkg.sub", "pkg.s*", "pkg.*.mod", "*", "./src/pkg"])
def test_deny_wins(deny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for modules in (["pkg"], ["pkg.sub.mod"], ["./src"], ["pkg.*"]):
        allow = Allowlist(modules, [deny])
        file = str(tmp_path / "src/pkg/sub/mod.py")
        assert Allowlist(modules).covers("pkg.sub.mod", file)
        assert not allow.covers("pkg.sub.mod", file)


@pytest.mark.parametrize("name", ["torch", "torch.nn", "os", "json.decoder", "graphmend_hook.runtime", "bytecode"])
def test_never_mended(name: str) -> None:
    allow = Allowlist(["/src", name])
    assert not allow.may_cover(name, None)
    assert not allow.covers(name, "/src/x.py")


BY_FILE = [
    # pattern, file, is the file meant?
    ("./src", "src/mod.py", True),
    ("./src", "src/deep/er/mod.py", True),
    ("./src", "src2/mod.py", False),
    ("./src/", "src/mod.py", True),
    ("src/pkg", "src/mod.py", False),
    (".", "src/mod.py", True),
    ("..", "mod.py", True),
    ("/", "src/mod.py", True),
    (".", "venv/lib/site-packages/lib.py", False),
    ("./venv/lib/site-packages", "venv/lib/site-packages/lib.py", True),
    ("./link", "src/mod.py", True),
    ("./src", "link/mod.py", True),
]


@pytest.mark.parametrize(("pattern", "file", "meant"), BY_FILE)
def test_directories(
    pattern: str,
    file: str,
    meant: bool,
    tmp_path: Path,
    write: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A directory means every file below it, by whatever path it is reached, but no packages installed there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("src", target_is_directory=True)
    path = write(file, "")
    allow = Allowlist([pattern])
    assert allow.covers("mod", str(path)) is meant
    if meant:
        assert allow.may_cover("mod", None)
        assert allow.may_cover("pkg.mod", [str(path.parent)])
        assert allow.may_cover("pkg.mod", ["/elsewhere", str(path.parent.parent)])


def test_a_more_specific_directory_takes_installed_packages() -> None:
    """A project with its environment inside, of which one package is wanted too."""
    allow = Allowlist(["/proj", "/proj/venv/site-packages/lib"])
    assert allow.covers("lib.mod", "/proj/venv/site-packages/lib/mod.py")
    assert not allow.covers("other.mod", "/proj/venv/site-packages/other/mod.py")


def test_a_directory_says_no_to_packages_elsewhere_by_their_path() -> None:
    assert not Allowlist(["/src"]).may_cover("pkg.mod", ["/lib/pkg"])
    assert not Allowlist(["/src"]).may_cover("pkg.mod", ["/src2/pkg"])


def test_a_relative_directory_is_that_of_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        allow = Allowlist(["./src"])
        monkeypatch.chdir(tmp_path)
        assert allow.covers("mod", str(tmp_path / name / "src/mod.py"))


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Allowlist(["~/src"]).covers("mod", str(tmp_path / "src/mod.py"))
