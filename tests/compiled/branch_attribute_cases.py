"""Branches that read and store attributes: of modules, through setters and properties, with private names.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

import logging
import random
from typing import Any

import torch
from expectations import DOWN, UP, Expectation, register

logger = logging.getLogger("branch_attribute_cases")
EXPECT: dict[str, Expectation] = {}
case = register(EXPECT)


class attributes_on_self(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)
        self.register_buffer("seen", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            z = x.detach() + 0
            if z.sum() > 0:
                self.last = z + 2
                self.seen = self.seen + self.last
            else:
                self.last = z - 1
        return x + 1


case(inductor=True)(attributes_on_self)


class register_buffer_on_both_sides(torch.nn.Module):
    """As the longrope of Phi3."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.ones(3), persistent=False)
        self.original = self.table

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = x.detach()
            if y.sum() > 0:
                if not hasattr(self, "long"):
                    self.long = self.original + 5
                self.register_buffer("table", self.long, persistent=False)
            else:
                self.register_buffer("table", self.original, persistent=False)
        return x + self.table


case(inputs=((UP,), (DOWN,), (UP,)), graphs=2)(register_buffer_on_both_sides)


class a_setter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.writes = torch.zeros(3), 0

    @property
    def last(self) -> torch.Tensor:
        return self.hidden

    @last.setter
    def last(self, value: torch.Tensor) -> None:
        self.writes += 1
        self.hidden = value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.detach()
        if y.sum() > 0:
            self.last = y + 1
        else:
            self.last = y + 2
        return x + self.writes


case(graphs=3)(a_setter)


class a_private_attribute(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.__last = torch.zeros(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.detach()
        if y.sum() > 0:
            self.__last = y + 1
        else:
            self.__last = y + 2
        return x + self.__last


case()(a_private_attribute)


class a_private_attribute_of_a_class_that_makes_up_others(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.__scale = 3.0

    def __getattr__(self, name: str) -> Any:
        return 100.0 if name.startswith("__") else super().__getattr__(name)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x + self.__scale
        return x


case()(a_private_attribute_of_a_class_that_makes_up_others)


class Meter(torch.nn.Module):
    """Has properties that do more than to read; what they do shows in what the cases return."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.marks, self.table = 0, ["made"], {"reads": 0}

    @property
    def counted(self) -> float:
        self.reads += 1
        return 2.0

    @property
    def listed(self) -> float:
        self.marks.append("read")
        return 2.0

    @property
    def entered(self) -> float:
        self.table["reads"] += 1
        return 2.0

    @property
    def drawn(self) -> float:
        return random.random()

    @property
    def logged(self) -> float:
        logger.warning("read")
        return 2.0


class a_property_counts_what_was_counted_before(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.reads = 0
        if x.sum() > 0:
            x = x + self.counted
        return x, self.reads


class a_property_appends_to_what_was_appended_to_before(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.marks = []
        self.marks.append("begun")
        if x.sum() > 0:
            x = x + self.listed
        return x, len(self.marks)


class a_property_stores_into_a_dict_that_was_stored_into_before(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.table["reads"] = 0
        if x.sum() > 0:
            x = x + self.entered
        return x, self.table["reads"]


class a_property_draws(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        if x.sum() > 0:
            x = x + self.drawn
        return x


class a_property_logs_after_a_log(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        logger.warning("begun")
        if x.sum() > 0:
            x = x + self.logged
        return x


class a_property_counts_in_a_side_that_is_refused(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.reads = 0
        if x.sum() > 0:
            x = x + self.counted
        else:
            x = x.reshape(1, 3)
        return x, self.reads


class a_property_counts_in_a_right_operand(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.reads = 0
        if x.sum() > 0 and x.max() > self.counted:
            x = x + 1
        return x, self.reads


class a_property_counts_in_a_right_operand_in_a_side(Meter):
    """Found by the hunt: what the operand stores was stored wherever the side is taken."""

    def forward(self, x: torch.Tensor) -> Any:
        self.reads = 0
        if x.sum() > 100:
            x = x - 1
        elif x.sum() > 0 and x.max() > self.counted:
            x = x + 1
        return x, self.reads


for _case in (
    a_property_counts_in_a_right_operand_in_a_side,
    a_property_appends_to_what_was_appended_to_before,
    a_property_counts_in_a_right_operand,
):
    case(declined="GM102-T11")(_case)
case(declined="-")(a_property_draws)
case(declined="GM102-T02")(a_property_counts_in_a_side_that_is_refused)
case()(a_property_counts_what_was_counted_before)
case()(a_property_logs_after_a_log)
case()(a_property_stores_into_a_dict_that_was_stored_into_before)
