"""What a side does to the program's objects: stores, counters, appends.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each.  Which value is stored Python decides, once the graph has run.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from expectations import BATCHES, SMALL, Expectation, register
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

EXPECT: dict[str, Expectation] = {}
logger = logging.getLogger(__name__)
case = register(EXPECT, inputs=BATCHES)


class Owner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.skipped, self.best, self.flag, self.why, self.last = 0, 100.0, False, "", None
        self.seen: list[Any] = []
        self.counts = {"bad": 0, "good": 0, "last": 0.0, "why": ""}
        self.same_counts = self.counts
        self.register_buffer("hits", torch.zeros(()))

    @property
    def twice(self) -> int:
        return self.skipped * 2

    def scaled(self, h: Tensor) -> Tensor:
        return h * self.skipped

    def note(self) -> None:
        self.skipped += 1


def scale_of(owner: nn.Module) -> float:
    return float(getattr(owner, "scale", 1.5))


def attribute_of(owner: nn.Module, name: str) -> Any:
    return getattr(owner, name)


@case(inductor=True)
class a_bad_batch_is_skipped(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.abs().max() > 2:
            self.skipped += 1
            return x
        return self.second(h)


@case(train="GM102-T06")
class a_record_and_a_counter(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if not torch.isfinite(h).all() or h.abs().max() > 2:
            logger.warning("batch %d is bad: %s", self.skipped, h.abs().max().item())
            self.skipped += 1
            self.flag = True
            return torch.zeros_like(h)
        return h * 2


@case(graphs=2)
class the_best_is_kept(Owner):
    def forward(self, x: Tensor) -> Tensor:
        loss = self.first(x).pow(2).mean()
        if loss.item() < self.best:
            self.best = loss.item()
            self.skipped = 0
        else:
            self.skipped += 1
        return loss


@case()
class a_shape_is_shown_behind_a_store(Owner):
    def forward(self, x: Tensor) -> Tensor:
        spread = x.std().item()
        if spread > 1.0:
            self.why = "spread"
            logger.info("%.4f of %s", spread, tuple(x.shape))
            self.seen.append(round(spread, 3))
            return x / spread
        return x


@case()
class texts_of_both_sides(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.abs().max() > 2:
            self.why = "large"
        elif x.mean() > 0:
            self.why = "positive"
        return x + 1


@case()
class an_append_on_each_side(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.mean() > 0:
            self.seen.append(("up", h.mean().item()))
        else:
            self.seen.append({"down": float(h.detach().sum()), "n": int((h > 0).sum())})
        return h


@case()
class the_tensor_itself_is_appended(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).detach()
        if h.mean() > 0:
            self.seen.append(h)
        h.add_(1)
        return h * 2


@case()
class it_is_returned_with_the_result(Owner):
    def forward(self, x: Tensor) -> Any:
        if x.max() > 2:
            self.skipped += 2
        return x * 2, self.skipped


@case()
class it_is_shown_by_a_record(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 2:
            self.skipped += 1
        logger.info("%s", self.skipped)
        return x * 2


@case()
class a_return_in_a_branch_of_a_side(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.abs().max() > 1.5:
            if h.mean() > 0:
                self.skipped += 1
                return h * 2
            self.best = h.max().item()
            return h
        self.skipped = 0
        return self.second(h)


@case()
class a_buffer_and_a_record(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.mean() > 0:
            self.hits = self.hits + 1
            logger.info("hit")
            return h
        return h * 2


@case(inputs=((SMALL,), (SMALL * 0,), (SMALL,)))
class what_is_returned_is_dropped(Owner):
    def stored(self, x: Tensor) -> bool:
        if x.any():
            self.skipped += 1
            return True
        return False

    def forward(self, x: Tensor) -> Tensor:
        self.stored(x)
        return x * 2


@case(graphs=5)
class a_property_reads_it_on_the_same_side(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 1:
            self.skipped += 1
            x = x * self.twice
        return x


@case(graphs=5)
class a_method_reads_it_on_the_same_side(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 1:
            self.skipped += 1
            x = self.scaled(x)
        return x


@case()
class a_function_asks_for_another_attribute_by_name(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 1:
            self.skipped += 1
            x = x * scale_of(self)
        return x


@case(graphs=5)
class a_function_asks_for_any_attribute(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 1:
            self.skipped += 1
            x = x * attribute_of(self, "skipped")
        return x


@case(graphs=5)
class a_method_counts(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 1:
            self.note()
        return x * 2


@case(declined="GM102-T03")
class a_size_rests_on_it(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 2:
            self.skipped += 1
        return x[: self.skipped]


@case(declined="GM102-T03")
class a_number_or_none(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.max() > 2:
            self.last = x.max().item()
        return x * 2


# --- items of a dict -------------------------------------------------------------------------------------------------


@case(inductor=True)
class counts_in_a_dict(Owner):
    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if h.abs().max() > 2:
            self.counts["bad"] += 1
            self.counts["why"] = "large"
            if h.abs().max() > 4:
                self.counts["bad"] += 10
        else:
            self.counts["good"] += 1
        return h


@case()
class an_item_in_a_step_and_behind(Owner):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.first(x).detach()
            if x.norm() > 3:
                self.counts["bad"] += 1
                break
        if x.norm() > 1:
            self.counts["last"] = x.norm().item()
        return x


@case()
class a_tensor_in_a_dict(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.counts["last"] = x.detach().mean().item()
            self.counts["why"] = "large"
            return x * 2
        return x + 1


@case(graphs=5)
class a_dict_with_another_name(Owner):
    def forward(self, x: Tensor) -> Tensor:
        counts = self.counts
        if x.detach().max() > 3:
            self.counts["bad"] += 1
            x = x * counts["bad"]
        return x


@case(graphs=5)
class a_dict_under_another_attribute(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.counts["bad"] += 1
            x = x * self.same_counts["bad"]
        return x


@case(graphs=5)
class a_method_may_look_at_a_dict(Owner):
    def bad(self) -> int:
        return self.same_counts["bad"]

    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.counts["bad"] += 1
            x = x * self.bad()
        return x


@case(declined="GM102-T11")
class a_key_that_is_not_there(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.counts["new"] = 1
        return x * 2


@case(graphs=5)
class the_leaves_of_a_tree_are_asked_for(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.counts["bad"] += 1
            x = x * tree_leaves(self.same_counts)[0]
        return x


@case(graphs=5)
class a_dict_of_another_module(Owner):
    def __init__(self) -> None:
        super().__init__()
        self.first.counts = self.counts

    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.counts["bad"] += 1
            x = x * self.first.counts["bad"]
        return x


@case(declined="GM102-T03")
class what_a_list_has_taken(Owner):
    def taken(self) -> list[int]:
        return [self.skipped, 1]

    def forward(self, x: Tensor) -> tuple[Tensor, list[int]]:
        found = [0]
        if x.detach().max() > 3:
            self.skipped += 1
            found = self.taken()
        return x * 2, found


@case()
class a_registry_is_asked_for(Owner):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.mean = x.detach().mean()
            x = x - self._buffers["mean"]
        return x


@case(graphs=5)
class a_namespace_is_asked_for(Owner):
    def told(self) -> int:
        return int(vars(self)["skipped"])

    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.skipped += 1
            x = x * self.told()
        return x


@case()
class methods_and_properties_that_look_elsewhere(Owner):
    @property
    def factor(self) -> int:
        return len(self.counts)

    def scaled_by_factor(self, x: Tensor) -> Tensor:
        return self.first(x) * self.factor

    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.skipped += 1
            x = self.scaled_by_factor(x) * self.factor
        return x
