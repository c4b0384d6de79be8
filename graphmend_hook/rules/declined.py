"""How a rule gives up a statement that it is taking apart."""

from __future__ import annotations

from ..diagnostics import Refusal


class Declined(Exception):  # noqa: N818  control flow, not an error
    """The statement cannot be lowered; the refusal says why."""

    def __init__(self, number: str, text: str) -> None:
        super().__init__(number, text)
        self.number, self.text = number, text

    def refusal(self, rule_code: str) -> Refusal:
        return Refusal(f"{rule_code}-{self.number}", self.text)
