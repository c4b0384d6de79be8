"""Calls in sides: of modules, functions and operators that no table knows.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each.  In training what one side alone uses gets no gradient where it is not taken.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from expectations import FAILS, SMALL, Expectation, register
from torch import Tensor, nn

EXPECT: dict[str, Expectation] = {}
case = register(EXPECT, inputs=((SMALL,), (SMALL * 8,), (SMALL.abs() + 3,), (SMALL,)))


class Owner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.norm, self.statistics, self.dropout = nn.LayerNorm(8), nn.BatchNorm1d(8), nn.Dropout(0.5)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 8))
        self.weight, self.table = nn.Parameter(torch.randn(8, 8)), nn.Embedding(10, 8)
        self.calls, self.seen = 0, [0.0]

    def doubled(self, h: Tensor) -> Tensor:
        return h * 2


def scaled_norm(h: Tensor) -> Tensor:
    return F.layer_norm(h, (8,)) * 2


@case(inductor=True)
class a_module(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            h = self.norm(h)
        return h * 2


@case(inductor=True)
class a_module_on_each_side(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 2:
            h = self.first(x)
        else:
            h = self.second(x)
        return h


@case()
class one_module_on_both_sides(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        return self.first(h) if h.max() > 1.5 else self.first(h * 0.5)


@case()
class a_function_of_the_module(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 2:
            x = scaled_norm(x)
        return self.first(x)


@case()
class a_product_of_matrices(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.abs().max() > 2:
            h = F.softmax(h, -1) @ self.weight
        return h


@case(inductor=True)
class a_block_that_writes_to_its_own_memory(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.abs().max() > 2:
            h = h + self.block(F.gelu(h))
        return h


@case()
class returns_at_several_places(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 3:
            return h
        h = F.gelu(self.second(h))
        if h.max() > 1:
            return h
        return self.norm(h)


@case()
class a_method_with_a_branch_of_its_own(Owner):
    def inner(self, h: Tensor) -> Tensor:
        if h.sum() > 0:
            return self.norm(h)
        return F.gelu(h)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1.5:
            h = self.inner(h)
        return h


@case()
class a_branch_in_a_side(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            if h.min() < -2:
                h = self.norm(h)
            else:
                h = F.gelu(self.second(h))
        return h


@case()
class arguments_with_stars(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        given, options = (h, (8,)), {"eps": 1e-3}
        if h.max() > 1.5:
            h = F.layer_norm(*given, **options)
        return h


@case()
class several_results(Owner):
    def both(self, h: Tensor) -> tuple[Tensor, Tensor]:
        return self.norm(h), h * 2

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            a, b = self.both(h)
        else:
            a, b = h, h + 1
        return a + b


@case()
class one_module_in_two_branches(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 2:
            h = self.second(h)
        h = h + 1
        if h.min() < -1:
            h = self.second(h)
        return h


@case()
class a_module_that_is_used_before(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.second(self.first(x))
        if h.max() > 1:
            h = self.second(h) * h
        return h


@case()
class a_module_that_is_frozen(Owner):
    def __init__(self) -> None:
        super().__init__()
        self.second.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            h = self.second(h)
        return h


@case()
class attention(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)[None]
        if h.max() > 1.5:
            h = F.scaled_dot_product_attention(h @ self.weight, h, h)
        return h[0]


@case()
class half_precision(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).bfloat16()
        if h.max() > 1:
            h = F.gelu(h) * F.layer_norm(h, (8,))
        return h.float()


@case()
class under_autocast(Owner):
    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            h = self.first(x)
            if h.max() > 1:
                h = self.second(h)
        return h.float()


# --- gradients that would be NaN where a side is not taken -------------------------------------------------------------


@case(inductor=True)
class singular_operations_of_a_method(Owner):
    def roots(self, h: Tensor) -> Tensor:
        return (h.log() / h.sqrt()).exp() * h.pow(0.3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if (h > 0).all():
            h = self.roots(h)
        return h


@case()
class singular_behind_what_hands_gradients_on(Owner):
    def roots(self, h: Tensor) -> Tensor:
        a = h.abs().reshape(-1)
        return (a.log() * a.rsqrt()).reshape(h.shape)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if (h > 0).all():
            h = self.roots(h)
        return h


@case()
class what_is_read_is_written_into_own_memory(Owner):
    def roots(self, h: Tensor) -> Tensor:
        z = self.norm(h)
        z.add_(h - h.min() * 0)
        return z.log() * 2

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if (h > 0).all():
            h = self.roots(h)
        return h


@case()
class a_weight_is_added_in_place(Owner):
    def shifted(self, h: Tensor) -> Tensor:
        z = h.clone()
        z.add_(self.second.bias)
        return z

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 2:
            h = self.shifted(h)
        return h


@case(train="GM102-T06")
class what_is_sheltered_is_written_to(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1.5:
            h = h.clone().div_(h)
        return h


@case()
class what_is_scaled_is_written_to(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1.5:
            h = h.clone().mul_(2)
        return h


# --- what a call may not do --------------------------------------------------------------------------------------------


@case()
class draws_where_it_trains(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.abs().max() > 2:
            h = self.dropout(h)
        return h


@case()
class writes_statistics_where_it_trains(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.abs().max() > 2:
            h = self.statistics(h)
        return h


@case(graphs=5)
class counts(Owner):
    def counted(self, h: Tensor) -> Tensor:
        self.calls += 1
        return h * 2

    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        if h.max() > 1.5:
            h = self.counted(h)
        return h, self.calls


@case(declined="GM102-T11")
class appends(Owner):
    def kept(self, h: Tensor) -> Tensor:
        self.seen.append(1.0)
        return h * 2

    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        if h.max() > 1.5:
            h = self.kept(h)
        return h, len(self.seen)


@case()
class writes_to_what_it_is_given(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = x + 1
        if h.max() > 1.5:
            h = F.relu(h, inplace=True) + 1
        return h


@case()
class looks_up_what_may_not_be_there(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        rows = (h[:, 0].abs() * 3).long()
        if rows.max() < 10:
            h = h + self.table(rows)
        return h


@case(declined="GM102-T02")
class factors_what_may_not_be_definite(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = x @ x.T
        if h.min() > 0:
            h = torch.linalg.cholesky(h + 40 * torch.eye(4))
        return h


@case(declined="GM102-T14")
class costs_much(Owner):
    def __init__(self) -> None:
        super().__init__()
        self.large = nn.Sequential(nn.Linear(8, 1024), nn.Linear(1024, 2048), nn.Linear(2048, 8))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            h = self.large(h)
        return h


@case(declined="GM102-T05")
class raises_where_it_is_not_taken(Owner):
    def checked(self, h: Tensor, extra: Any) -> Tensor:
        return h * extra.scale  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 100:
            h = self.checked(h, None)
        return h


@case(graphs=5)
class reads_what_the_side_has_stored(Owner):
    def total(self, h: Tensor) -> Tensor:
        return h * self.calls

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            self.calls = 2
            h = self.total(h)
        return h


@case(declined="GM102-R02")
class calls_its_base(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            h = super().doubled(h)
        return h


# --- statements that are judged as a whole -----------------------------------------------------------------------------


@case()
class a_number_is_augmented(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        loss: Any = 0.0
        if h.max() > 1:
            loss += h.pow(2).mean()
        else:
            loss += h.mean()
        return loss + h  # type: ignore[no-any-return]


@case(inductor=True)
class a_tensor_is_augmented(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            h *= 0.5
        return h + 1


@case(train="GM102-T10")
class what_autograd_keeps_is_augmented(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        z = h.clamp(max=1).exp()
        if h.max() > 100:
            z *= 2
        return z


@case()
class a_tensor_with_another_name_is_augmented(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        same = h
        if h.max() > 1:
            h *= 0.5
        return h + same


@case()
class a_view_is_augmented(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        column = h[:, 0]
        if h.max() > 1:
            column += 1
        return h + column.sum()


@case(train="GM102-T10")
class an_input_is_augmented(Owner):
    def forward(self, x: Tensor) -> Tensor:
        x = x.detach()
        if self.first(x).max() > 1:
            x += 1
        return self.first(x)


@case()
class a_loop_over_modules(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            for layer in (self.first, self.second):
                h = layer(h)
        return h


@case()
class a_loop_that_ends_early(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            for i in range(4):
                if i == 2:
                    break
                h = self.second(h)
        return h


@case()
class a_block_without_gradients(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            with torch.no_grad():
                scale = self.norm(h).abs().mean()
            h = h / scale
        return h


@case()
class a_method_that_gives_nothing(Owner):
    def check(self, h: Tensor) -> None:
        assert h.shape[0] == 4

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            self.check(h)
            assert h.dim() == 2, "a matrix"
            h = self.norm(h)
        return h


@case()
class a_loop_that_draws(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            for _ in range(2):
                h = h + torch.rand(8)
        return h


@case(declined="GM102-R03")
class a_name_that_a_loop_may_not_bind(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            for layer in (self.first, self.second):
                last = layer(h)
            h = h + last
        return h


@case(declined="GM102-T13")
class a_loop_with_a_branch_on_data(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1:
            for _ in range(3):
                if h.max() > 2:
                    h = h * 0.5
        return h


@case()
class a_later_branch_takes_its_place(Owner):
    def forward(self, x: Tensor) -> Tensor:
        best = x
        y = self.first(x)
        if y.sum() > 0:
            best = y
        z = self.second(x)
        if z.sum() > 0:
            best = z
        return best


@case()
class one_branch_is_read_by_another(Owner):
    def forward(self, x: Tensor) -> Tensor:
        best = x * 2
        if x.sum() > 1:
            x = self.first(x)
        y = self.second(x)
        if y.sum() > 0:
            best = y
        return best + self.norm(best)


@case()
class a_module_on_one_side_and_in_a_branch_of_the_other(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = x * 2
        if x.sum() > 0:
            if x.mean() > 0.5:
                h = self.first(x)
        else:
            h = self.first(x) + 1
        return h + self.second(h)


# --- expressions that no table knows --------------------------------------------------------------------------------


@case()
class a_list_of_calls(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1.5:
            h = torch.stack([layer(h) for layer in (self.first, self.second) if layer is not None]).mean(0)
        return h


@case()
class a_sum_of_roots(Owner):
    """Their derivative is infinite at zero, where the side is not taken."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).abs() * (x > 0)
        if h.min() > 0:
            h = sum(h.sqrt() * i for i in range(1, 3)) + h
        return h


@case()
class a_text_of_parts(Owner):
    def forward(self, x: Tensor) -> Any:
        h, tag = self.first(x), "small"
        if h.max() > 1.5:
            tag = f"large-{len(self.seen)}"
        return h, tag


@case(declined="GM102-T03")
class a_text_with_a_tensor_in_it(Owner):
    def forward(self, x: Tensor) -> Any:
        h, tag = self.first(x), "small"
        if h.max() > 1.5:
            tag = f"large: {h.max()}"
        return h, tag


@case()
class a_dict_of_what_is_computed(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1.5:
            h = {name: h * i for i, name in enumerate("ab")}["b"] + h
        return h


@case()
class a_slice_by_a_number(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h, n = self.first(x), self.calls
        if h.max() > 1.5:
            h = torch.cat([h[:, : n + 2], h[:, n + 2 :] * 2], -1)
        return h


@case()
class a_shift_and_a_set(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1.5:
            h = h * (1 << len({"a", *self.seen})) + (7 & 3)
        return h


@case()
class a_handler_in_a_function(Owner):
    def known(self, h: Tensor) -> Tensor:
        try:
            return h * {"a": 2.0}["b"]
        except KeyError:
            return h * 3

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1.5:
            h = self.known(h)
        return h


@case()
class draws_in_a_list(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1.5:
            h = h + sum([torch.randn(8) for _ in range(2)])
        return h


@case(declined=FAILS)
class a_property_that_would_fail(Owner):
    """Nobody asks for the property where the side is not taken."""

    @property
    def root(self) -> Tensor:
        return torch.linalg.cholesky(-torch.eye(8))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.max() > 1e6:
            h = h + self.root
        return h


@case()
class a_property_that_writes(Owner):
    @property
    def scale(self) -> float:
        with torch.no_grad():
            self.statistics.running_mean.mul_(0.9).add_(0.1)  # type: ignore[union-attr, operator]
        return 2.0

    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        if h.max() > 1.5:
            h = h * self.scale
        return h, self.statistics.running_mean.clone()  # type: ignore[union-attr, operator]


CHECKS = (lambda given: given.max() > 3, lambda given: given.min() < -3)


@case()
class any_of_what_checks_answer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if any(check(x) for check in CHECKS):
            x = x * 2
        return x


@case()
class not_all_of_what_checks_answer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if not all(check(x) for check in CHECKS):
            x = x * 2
        return x


@case()
class any_of_numbers_that_are_listed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if any(value > 3 for value in (x.max(), x.sum())):
            x = x * 2
        return x
