"""Keys that are texts with numbers in them: each is found, and stored, as in eager."""

from __future__ import annotations

import pytest
from module_runs import seen
from observing import Counting, both

PLAIN, MENDED = both("formatted_key_cases")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [*PLAIN.CASES])
def test_a_text_with_a_number_is_the_key_that_it_is_in_eager(name: str, backend: str) -> None:
    expected = seen(PLAIN.CASES[name], None)
    assert seen(MENDED.CASES[name], None) == expected
    assert seen(MENDED.CASES[name], Counting(backend)) == expected
