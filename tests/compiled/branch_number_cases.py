"""Numbers out of tensors that decide, and with which tensors are calculated.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each.  Python calculates in float64: so does the graph.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import torch
from expectations import SMALL, Expectation, register
from torch import Tensor, nn

EXPECT: dict[str, Expectation] = {}
logger = logging.getLogger(__name__)
case = register(EXPECT, inputs=((SMALL,), (SMALL * 8,), (SMALL.abs() + 3,), (SMALL * 0,), (SMALL,)))


class Owner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(8, 8)


@case(inductor=True)
class clips_by_its_norm(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        norm = h.norm().item()
        if norm > 4.0:
            h = h * (4.0 / norm)
        return h


@case(inductor=True)
class clips_by_a_coefficient(Owner):
    def forward(self, x: Tensor) -> Tensor:
        norm = x.norm().item()
        coefficient = 2.5 / (norm + 1e-6)
        if coefficient < 1:
            x = x.mul(coefficient)
        return x


@case(inductor=True)
class scales_and_scales_back(Owner):
    def forward(self, x: Tensor) -> Tensor:
        scale = x.abs().max().item()
        if scale == 0:
            return x
        return self.first(x / scale) * scale


@case(breaks=False)
class clamps_by_a_quantile(Owner):
    def forward(self, x: Tensor) -> Tensor:
        s = max(x.abs().quantile(0.9).item(), 1.0)
        return x.clamp(-s, s) / s


@case()
class two_numbers_of_one_test(Owner):
    def forward(self, x: Tensor) -> Tensor:
        low, high = x.min().item(), x.max().item()
        if low < -1 or high > 1:
            warnings.warn(f"inputs of {low:.2f} to {high:.2f}", stacklevel=1)
        return self.first(x)


@case()
class a_number_chooses_a_level(Owner):
    def forward(self, x: Tensor) -> Tensor:
        norm = x.norm().item()
        level = logging.WARNING if norm > 6 else logging.INFO
        logger.log(level, "norm %.3f", norm)
        return x * 2


@case()
class a_number_chooses_a_number(Owner):
    def forward(self, x: Tensor) -> Any:
        scale = 0.5 if x.mean().item() > 0.25 else 1.5
        return x * scale, scale


@case()
class a_third_is_a_third_of_python(Owner):
    def forward(self, x: Tensor) -> Tensor:
        number = x.sum().item()
        total = number / 3 + number / 7 - 0.1
        return x * 2 if total * 3 > 1.0 else x + total


@case()
class a_flag_of_python(Owner):
    def forward(self, x: Tensor) -> Any:
        is_large = bool((x > 2).any())
        if not is_large:
            x = x - 1
        return x, is_large


@case(breaks=False)
class the_least_of_two(Owner):
    def forward(self, x: Tensor) -> Tensor:
        step = min(x.norm().item(), abs(x.min().item()))
        return x - step * 0.5


@case(breaks=False)
class it_is_given_to_methods(Owner):
    def forward(self, x: Tensor) -> Any:
        s = x.mean().item()
        h = x.clone().mul_(s + 2).clamp_(min=max(s, 0.5))
        return torch.where(x > s, h, s), h.masked_fill(x < s, s), x.new_zeros(4, 8).sub(s)


@case(declined="GM104-T02", train="GM104-T01")
class a_bound_may_be_zero(Owner):
    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(min=x.mean().item())


@case()
class a_divisor_is_zero_on_the_other_side(Owner):
    def forward(self, x: Tensor) -> Any:
        s = x.max().item()
        factor = 0.0 if s == 0 else 1.0 / s
        return x * factor, factor


@case()
class two_divisors_of_inner_branches(Owner):
    def forward(self, x: Tensor) -> Any:
        low, high, ratio = x.min().item(), x.max().item(), 1.0
        if high > 0:
            if low < 0:
                ratio = high / low
            else:
                ratio = 1.0 / high
        return x * ratio, ratio


@case(raises=True, breaks=False)
class a_divisor_may_be_zero(Owner):
    def forward(self, x: Tensor) -> Tensor:
        return x * (1.0 / x.abs().max().item())


@case(declined="GM104-T02", train="GM104-T01")
class half_a_tensor_is_rounded_otherwise(Owner):
    def forward(self, x: Tensor) -> Tensor:
        return x.half() * x.max().item()


@case(declined="GM104-T01", train="GM104-T01")
class a_probability(Owner):
    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.dropout(x, x.max().sigmoid().item(), training=False)


@case(declined="GM104-T02", train="GM104-T01")
class an_exponent(Owner):
    def forward(self, x: Tensor) -> Tensor:
        return x.abs() ** x.max().item()


@case(inductor=True)
class a_list_of_numbers_is_taken_apart(Owner):
    def forward(self, x: Tensor) -> Any:
        low, high = 0.0, 1.0
        if x.sum() > 4:
            low, high = x.flatten()[:2].tolist()
        return x, low + high


@case()
class a_list_of_numbers_is_shown(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 4:
            print("columns", x.amax(0).tolist(), x.max().tolist())
        return self.first(x)


@case(declined="GM102-T04", train="GM102-T04")
class a_list_of_what_data_counts(Owner):
    def forward(self, x: Tensor) -> Any:
        found: list[float] = []
        if x.sum() > 4:
            found = x[x > 1].tolist()
        return self.first(x), found
