"""Loops that data ends: `break` and `continue` under a test of data.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each.  In training a layer that eager has not come to gets no gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from expectations import SMALL, Expectation, register
from torch import Tensor, nn

EXPECT: dict[str, Expectation] = {}
case = register(EXPECT, inputs=((SMALL,), (SMALL * 8,), (SMALL.abs() + 3,), (SMALL * 0.1,)))


class Owner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)


@case(inductor=True)
class a_layer_may_be_the_last(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
            if x.softmax(-1).max() > 0.4:
                break
        return x


@case(inductor=True)
class an_iteration_converges(Owner):
    def forward(self, x: Tensor) -> Tensor:
        y = x
        for _ in range(8):
            new = 0.5 * (y + x.abs() / (y.abs() + 1))
            if (new - y).abs().max() < 0.05:
                break
            y = new
        return y


@case()
class layers_are_passed_over(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if x.abs().max() > 2:
                continue
            x = layer(x) * 1.5
        return x


@case()
class layers_are_dropped_at_random(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if self.training and torch.rand([]) < 0.3:
                continue
            x = layer(x)
        return x


@case()
class statements_before_the_break(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for _ in range(4):
            h = torch.tanh(h) * 1.2
            if h.abs().max() < 0.9:
                h = h * 2
                break
            h = h + 0.01
        return h


@case()
class the_test_stands_first(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        running = torch.ones(4, dtype=torch.bool)
        total = torch.zeros(4)
        for _ in range(5):
            if not running.any():
                break
            p = torch.sigmoid(h.mean(-1)) * 0.5
            total = total + torch.where(running, p, 0.0)
            running = running & (total < 0.9)
            h = torch.where(running[:, None], self.second(h), h)
        return h


@case()
class python_decides_the_first_steps(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for i in range(4):
            if i > 1 and x.abs().max() < 3:
                break
            x = self.first(x) * 2
        return x


@case()
class a_print_before_the_break(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for i in range(3):
            x = self.first(x)
            if x.abs().max() < 1:
                print("left", i)
                break
        return x


@case(inductor=True)
class returns_in_the_loop(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.first(x)
            if x.abs().max() < 1:
                return x
        return self.second(x)


@case()
class returns_several_values_in_the_loop(Owner):
    def forward(self, x: Tensor) -> Any:
        for _ in range(3):
            x = self.first(x)
            if x.abs().max() < 1:
                return x, x.sum()
        x = self.second(x)
        return x, x.mean()


@case()
class returns_what_it_computes_in_the_loop(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.first, self.second):
            y = layer(x)
            if y.abs().max() > 2:
                return self.layers[0](y)  # type: ignore[no-any-return]
            x = x + y
        return x


@case()
class returns_in_a_loop_under_a_python_test(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] == 4:
            for _ in range(3):
                x = self.first(x)
                if x.abs().max() < 1:
                    return x
        return self.second(x)


@case(declined="GM102-T03")
class returns_nothing_in_the_loop(Owner):
    def step(self, x: Tensor) -> Any:
        for _ in range(3):
            x = self.first(x)
            if x.abs().max() < 1:
                return None
        return x

    def forward(self, x: Tensor) -> Any:
        y = self.step(x)
        return x if y is None else y


@case()
class what_is_numbered(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers[:3]):
            x = layer(x) + i
            if x.abs().max() < 1.5:
                break
        return x


@case()
class no_data_ends_the_loop(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for i in range(4):
            if i == 2 and h.shape[0] == 4:
                break
            h = self.second(h)
        if h.max() > 1:
            h = h * 2
        return h


# --- left as they were written -----------------------------------------------------------------------------------------


@case()
class a_loop_with_an_else(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for _ in range(3):
            if h.abs().max() < 1:
                break
            h = h * 0.5
        else:
            h = h + 1
        return self.second(h)


@case()
class two_exits(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.first(x)
            if x.abs().max() < 1:
                break
            x = x * 2
            if x.mean() > 0:
                break
        return x


@case(declined="GM102-R06")
class a_function_reads_what_the_loop_binds(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        y = h

        def shifted(value: Tensor) -> Tensor:
            return value + h

        for layer in self.layers:
            h = layer(h)
            if h.abs().max() < 1.5:
                break
            y = shifted(y)
        return y


@case(declined="GM102-T11")
class an_iterator_is_used_behind_the_loop(Owner):
    def forward(self, x: Tensor) -> Tensor:
        layers = iter(self.layers)
        for layer in layers:
            x = layer(x)
            if x.abs().max() < 1.5:
                break
        for layer in layers:
            x = layer(x)
        return x


@case(declined="GM102-T11")
class a_generator_counts(Owner):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def counted(self) -> Any:
        for layer in self.layers:
            self.calls += 1
            yield layer

    def forward(self, x: Tensor) -> Any:
        for layer in self.counted():
            x = layer(x)
            if x.abs().max() < 1.5:
                break
        return x, self.calls


@case(declined="GM102-T11", train="GM102-T11")
class a_step_stores(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
            self.last = x.detach()
            if x.abs().max() < 1.5:
                break
        return x


@case()
class the_step_is_read_behind_the_loop(Owner):
    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        for i in range(4):  # noqa: B007
            if h.abs().max() < 1:
                break
            h = h * 0.5
        return h * i


@case()
class the_steps_are_counted(Owner):
    def forward(self, x: Tensor) -> Any:
        h, k = self.first(x), 0
        for _ in range(4):
            if h.abs().max() < 1:
                break
            h = h * 0.5
            k += 1
        return h, k


@case()
class a_step_draws(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for _ in range(4):
            if h.abs().max() < 1:
                break
            h = h * torch.rand(8)
        return h


@case(declined="GM102-T14")
class all_steps_together_cost_much(Owner):
    def __init__(self) -> None:
        super().__init__()
        self.large = nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).repeat(1, 64)
        for _ in range(50):
            if h.abs().max() < 1e-6:
                break
            h = self.large(h)
        return h


@case(declined="GM102-T02")
class shapes_grow(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for _ in range(3):
            if h.abs().max() < 1:
                break
            h = torch.cat([h, h])
        return h


@case(declined="GM100-R01")
class the_loop_is_switched_off(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):  # graphmend: off
            x = self.first(x)
            if x.abs().max() < 1:
                break
        return x


@case()
class two_exits_return(Owner):
    def forward(self, x: Tensor) -> Any:
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if x.abs().max() > 3:
                return x * 0, "large", i
            if x.mean() < -0.2:
                return x + 1, "low", i
        return x, "ran", len(self.layers)


@case()
class a_step_is_passed_over_before_the_exit(Owner):
    def forward(self, x: Tensor) -> Any:
        n, i = 0, -1
        for i, layer in enumerate(self.layers):  # noqa: B007
            y = layer(x)
            if y.mean() < 0:
                continue
            n += 1
            x = y
            if x.abs().max() > 1:
                break
            x = x + 0.1
        return x, n, i


@case()
class a_step_is_passed_over_behind_the_exit(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            y = layer(x)
            if y.abs().max() > 2:
                break
            if y.mean() < 0:
                continue
            x = y * (i + 1)
        else:
            x = x - 1
        return x


@case()
class an_else_prints(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if x.abs().max() > 1:
                print("left at", i)
                break
        else:
            print("ran through")
        return x


@case()
class python_and_data_end_it(Owner):
    def forward(self, x: Tensor) -> Any:
        for i, layer in enumerate(self.layers):
            if i == 3:
                break
            x = layer(x)
            if x.abs().max() > 1:
                break
        return x, i


@case(breaks=False)
class no_step_is_made(Owner):
    def forward(self, x: Tensor) -> Any:
        k = -1
        for k, layer in enumerate(self.layers[:0]):  # noqa: B007
            x = layer(x)
            if x.abs().max() > 1:
                break
        return x, k


@case()
class what_the_last_step_made(Owner):
    def forward(self, x: Tensor) -> Any:
        for k in range(5):  # noqa: B007
            z = 0.5 * (x + x.abs() / (x.abs() + 1))
            if (z - x).norm().item() < 0.3:
                break
            x = z
        return z, k


@case()
class the_target_is_a_tuple(Owner):
    def forward(self, x: Tensor) -> Any:
        for (a, b), layer in zip([(1, 2), (3, 4), (5, 6)], self.layers, strict=False):
            x = layer(x) * a / b
            if x.abs().max() > 1:
                break
        return x, a, b


@case()
class the_best_step_is_kept(Owner):
    def forward(self, x: Tensor) -> Any:
        best, at = x, 0
        for k, layer in enumerate(self.layers):
            x = layer(x)
            if x.norm() > best.norm():
                best, at = x, k
            if best.norm() > 8:
                break
        return best, at


@case()
class one_layer_in_each_step(Owner):
    def forward(self, x: Tensor) -> Tensor:
        y = x
        for _ in range(10):
            y = torch.tanh(self.first(y))
            error = (y - x).norm().item()
            if error < 2.5:
                break
        return y


@case(declined="GM102-R08")
class a_break_and_a_return(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
            if x.abs().max() > 3:
                break
            if x.mean() < -0.2:
                return x * 0
        return x


@case(declined="GM102-R05")
class what_only_later_steps_make(Owner):
    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x = layer(x)
            if x.abs().max() > 3:
                break
            z = x * 2
        return x, z


class Counter(Owner):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.flag = 0, False
        self.seen: list[int] = []


@case(graphs=4)  # a counter is no symbol where sizes are none
class each_step_is_counted(Counter):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
            self.n += 1
            if x.abs().max() > 1.2:
                break
        return x


@case()
class some_steps_are_counted(Counter):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
            if x.mean() > 0:
                self.n += 1
            if x.abs().max() > 1.2:
                self.flag = True
                break
        return x


@case()
class a_step_that_is_passed_over_is_counted(Counter):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            y = layer(x)
            if y.mean() > 0:
                self.n += 1
                continue
            x = y
        return x


@case()
class it_is_counted_where_it_returns(Counter):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
            if x.abs().max() > 1.2:
                self.n += 1
                return x
        return x * 2


@case()
class a_store_behind_the_loop_that_returned(Counter):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
            if x.abs().max() > 1.2:
                return x
        if x.mean() > -5:
            self.n = 7
        self.flag = True
        return x * 2


@case()
class a_store_and_an_append_in_the_else(Counter):
    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if x.abs().max() > 1.2:
                self.seen.append(i)
                break
        else:
            self.seen.append(-1)
            if x.mean() > -5:
                self.n += 1
        return x


@case()
class returns_while_numbers_grow(Owner):
    """linear_operator, `psd_safe_cholesky`: nobody reads the numbers of a step once the loop has been left."""

    def forward(self, x: Tensor) -> Tensor:
        y, before = self.first(x), 0
        for step in range(4):
            scale = 1e-3 * (50**step)
            y = y + ((y > 0) * (scale - before))
            before = scale
            if y.abs().max() > 1.5:
                return y * 2
        return y * before


@case(train="GM102-T03")
class names_are_bound_behind_a_return(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for step, layer in enumerate(self.layers):
            x = layer(x)
            if x.abs().max() < 1.5:
                return x * 3
            kept = x * 2
            scale = 0.5 if step == 0 else 0.25
        return kept * scale


@case()
class the_else_reads_what_a_step_has_bound(Owner):
    """A Sinkhorn iteration, whose ``else`` says that it has not converged."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for _step in range(4):
            h = h * 0.5
            size = h.abs().max()
            if size < 0.2:
                break
        else:
            h = h - size
        return h
