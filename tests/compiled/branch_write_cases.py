"""What a side writes in place: to buffers, parameters, inputs, items, views.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each.  The memory stays the same, and is written to where the side is taken.
"""

from __future__ import annotations

import logging

import torch
from expectations import BATCHES, Expectation, register
from torch import Tensor, nn

EXPECT: dict[str, Expectation] = {}
logger = logging.getLogger(__name__)
case = register(EXPECT, inputs=BATCHES)


class Owner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.count = nn.Linear(8, 8), 0
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("scale", torch.ones(8))
        self.register_buffer("load", torch.zeros(4))
        self.register_buffer("seen", torch.tensor(0))


# --- buffers, as running statistics and codebooks have them ----------------------------------------------------------


@case(inductor=True)
class the_first_batch_sets_statistics(Owner):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            if self.seen == 0:
                self.mean.copy_(x.mean(0))
            else:
                self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.seen += 1
        return self.first(x - self.mean)


@case(inductor=True)
class a_scale_that_grows_and_shrinks(Owner):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        if (~torch.isfinite(y)).any() | (y.abs().max() > 4):
            self.scale.mul_(0.5)
            self.seen.zero_()
        else:
            self.seen.add_(1)
            if self.seen == 3:
                self.scale.mul_(2.0)
                self.seen.zero_()
        return y * self.scale.clone()


@case()
class a_method_that_updates(Owner):
    def update(self, x: Tensor) -> None:
        self.mean.lerp_(x.detach().mean(0), 0.25)
        self.seen.add_(1)

    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 3:
            self.update(x)
        return self.first(x - self.mean)


@case(inductor=True)
class items_of_a_buffer(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for i in range(4):
            if x[i].max() > 3:
                self.load[i] += 1
            else:
                self.load[i] *= 0.5
        if x.sum() > 0:
            self.scale[:2] = 2
            self.scale[..., -1] = x.detach().mean()
        return self.first(x) * self.load.sum() * self.scale


@case()
class an_assignment_that_augments(Owner):
    def forward(self, x: Tensor) -> tuple[Tensor, bool]:
        before = self.mean
        if x.mean() > 0:
            self.mean += x.detach().mean(0)
        return self.first(x - self.mean), before is self.mean


@case(inductor=True)
class a_queue(Owner):
    def forward(self, x: Tensor) -> Tensor:
        rows = self.first(x)
        if x.std() > 1:
            self.load.copy_(torch.cat([self.load[1:], rows.detach().mean().reshape(1)]))
        return rows * self.load.mean()


# --- parameters ------------------------------------------------------------------------------------------------------


@case(inductor=True)
class parameters_are_clipped(Owner):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            norm = self.first.weight.norm()
            if norm > 1.0:
                self.first.weight.mul_(1.0 / norm)
        return self.first(x)


@case()
class parameters_in_a_loop(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 2:
            with torch.no_grad():
                for parameter in self.first.parameters():
                    parameter.clamp_(-0.1, 0.1)
        return self.first(x)


@case(train="GM102-T10")
class a_parameter_that_autograd_has_kept(Owner):
    """Eager fails in the backward pass if the side was taken, and only then."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(self.first(x))
        with torch.no_grad():
            if x.max() > 100:
                self.first.weight.mul_(0.9)
        return y


# --- inputs, what the trace has made, views --------------------------------------------------------------------------


@case(train="GM102-T10")
class an_input(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.abs().max() > 3:
            x.clamp_(-3, 3)
        return self.first(x)


@case(inductor=True)
class rows_under_a_mask(Owner):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        bad = y.isnan() | (y.abs() > 2)
        if bad.any():
            y[bad] = 0.0
        return y * 2


@case()
class views_of_what_is_written(Owner):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        rows, last = y[1:], y[-1]
        if x.detach().max() > 3:
            rows.mul_(2)
            y[0] = 1.0
        return y + last, rows.exp()


@case()
class a_root_of_what_is_negative(Owner):
    """The gradient is NaN where the side is taken, and only there."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x) * 0
        if x.detach().max() > 3:
            y.sqrt_()
        return y


@case(train="GM102-T10")
class what_is_kept_before(Owner):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x).exp()
        if x.detach().max() > 100:
            y.mul_(2)
        return y


@case(train="GM102-T06")
class a_gradient_comes_in(Owner):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x.detach())
        if x.detach().max() > 3:
            y.add_(x)
        return y


@case(declined="GM102-T10")
class what_overlaps(Owner):
    """Eager refuses it where the side is taken."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.detach().reshape(-1) * 1
        if x.detach().max() > 100:
            y[1:].add_(y[:-1])
        return y


@case(declined="GM102-T10")
class elements_that_share_memory(Owner):
    def forward(self, x: Tensor) -> Tensor:
        spread = torch.zeros(1, 8).expand(4, 8)
        if x.detach().max() > 100:
            spread.add_(1)
        return self.first(x.detach()) + spread


@case(declined="GM102-T04")
class places_that_the_data_gives(Owner):
    def forward(self, x: Tensor) -> Tensor:
        places = (x.detach().amax(-1).clamp(min=0) * 2).long()
        if (places < 4).all():
            self.load[places] = 1
        return self.first(x.detach()) * self.load.sum()


# --- among other things that a side does -----------------------------------------------------------------------------


@case()
class what_is_logged_around_a_write(Owner):
    def forward(self, x: Tensor) -> Tensor:
        logger.info("before %s", self.mean.sum())
        if x.max() > 3:
            self.mean.add_(1)
            logger.warning("in %.2f", self.mean.sum().item())
        logger.info("behind %s", self.mean.sum())
        return self.first(x.detach()) + self.mean


@case(raises=True)
class a_guard_behind_a_write(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 2:
            self.mean.add_(1)
        if x.detach().max() > 5:
            raise ValueError(f"large {self.mean.sum().item()}")
        return self.first(x.detach() + self.mean)


@case(train="GM102-T06")
class a_write_and_a_return(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 4:
            self.seen += 1
            return torch.zeros_like(x)
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return x - self.mean


@case()
class both_sides_write(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.mean.add_(1)
        else:
            self.mean.sub_(self.mean.mean() + 1)
        return self.first(x.detach()) + self.mean


@case()
class an_exit_before_a_write(Owner):
    def forward(self, x: Tensor) -> Tensor:
        y = x.detach()
        for _ in range(3):
            y = self.first(y).detach()
            if y.norm() < 1:
                break
            self.mean.add_(y.mean(0))
        return y + self.mean


# --- constants, of which the trace knows what they hold until a side writes to them -----------------------------------


@case()
class a_count_is_read(Owner):
    def forward(self, x: Tensor) -> tuple[Tensor, object]:
        count = torch.tensor(0)
        if x.sum() > 0:
            count += 1
        return x, count.item()


@case()
class a_view_of_it_is_written_to(Owner):
    def forward(self, x: Tensor) -> tuple[Tensor, object]:
        count = torch.tensor(0)
        view = count.view(1)
        if x.sum() > 0:
            view += 1
        return x, count.item() + view.item()


@case()
class both_sides_write_to_it(Owner):
    def forward(self, x: Tensor) -> tuple[Tensor, object]:
        count = torch.tensor(0)
        if x.sum() > 0:
            count.copy_(torch.tensor(1))
        else:
            count += 2
        return x, float(count)


@case()
class a_loop_counts(Owner):
    def forward(self, x: Tensor) -> Tensor:
        count = torch.tensor(0)
        for row in x:
            if row.sum() > 0:
                count += 1
        return x / (count.item() + 1)


@case(declined="-", train="-")
class a_loop_begins_by_it(Owner):
    def forward(self, x: Tensor) -> Tensor:
        count = torch.tensor(0.0)
        if x.sum() > 0:
            count += 2
        while count < 3:
            count += 1
            x = x * 2
        return x
