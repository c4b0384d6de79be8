"""What a side does to the program's objects: stores, counters, appends.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each.  Which value is stored Python decides, once the graph has run.
"""

from __future__ import annotations

import dataclasses
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


@case(graphs=2)
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


# --- stores in methods, in other objects, and where a branch stands in another ------------------------------------------


class Statistics:
    def __init__(self) -> None:
        self.count, self.mean = 0, torch.zeros(8)

    def update(self, h: Tensor, by: int = 1) -> Statistics:
        self.count += by
        self.mean = self.mean * 0.9 + h.detach().mean(0) * 0.1
        return self


@dataclasses.dataclass
class Best:
    loss: float = 100.0
    step: int = -1


class Recording(Owner):
    def __init__(self) -> None:
        super().__init__()
        self.statistics, self.best_of, self.config = Statistics(), Best(), {"deep": {"count": 0}}
        self.register_buffer("centre", torch.zeros(8))
        self.total = torch.zeros(())

    def record(self, h: Tensor) -> None:
        self.total = h.detach().mean()
        self.why = "recorded"

    def move(self, h: Tensor) -> None:
        self.centre = self.centre * 0.5 + h.detach().mean(0)


@case(inductor=True)
class a_method_stores(Recording):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, str]:
        h = self.first(x)
        if h.abs().max() > 2:
            self.record(h)
            h = h * self.total
        else:
            self.why = "small"
        return h, self.total, self.why


@case(graphs=5)
class a_method_of_another_object(Recording):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.first(x)
        if h.abs().max() > 2:
            self.statistics.update(h)
        else:
            self.statistics.update(h, 2).update(h)
        return h - self.statistics.mean, self.statistics.mean


@case()
class a_record_of_the_best(Recording):
    def forward(self, x: Tensor) -> Tensor:
        loss = self.first(x).pow(2).mean()
        if loss.detach() < 1:
            self.best_of.loss, self.best_of.step = loss.item(), 1
        return loss


@case(inductor=True)
class a_buffer_is_replaced_in_a_method(Recording):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.move(x)
        return self.first(x) - self.centre


@case()
class a_method_stores_in_a_nested_side(Recording):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.first(x)
        if h.abs().max() > 2:
            self.record(h)
            if h.detach().min() < -1:
                self.move(h)
                self.flag = True
            h = h * 2
        elif h.detach().min() > 0:
            self.flag = True
        return h + self.centre, self.total


@case()
class a_method_stores_in_a_step(Recording):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(4):
            x = self.first(x).detach()
            if x.norm() > 3:
                self.record(x)
                break
            self.move(x)
        return x * self.centre


@case()
class a_method_stores_before_a_return(Recording):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.record(x)
            return x
        self.move(x)
        return self.first(x)


@case()
class two_attributes_change_places(Recording):
    def forward(self, x: Tensor) -> Tensor:
        if x.detach().max() > 3:
            self.why, self.text = self.text, self.why
        return self.first(x)

    def __init__(self) -> None:
        super().__init__()
        self.text = "other"


@case(graphs=5)
class an_item_deep_in_a_dict(Recording):
    def forward(self, x: Tensor) -> Tensor:
        key = "count"
        if x.detach().max() > 3:
            self.config["deep"][key] += 1
            self.counts.update(why="large")
        return self.first(x)


@case()
class an_object_of_the_functions_own(Recording):
    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        own, found, listed = Statistics(), {"why": "small", "mean": x.mean()}, [x.sum(), ""]
        if x.detach().max() > 3:
            own.mean = x[0] * 2
            found["why"] = "large"
            found["mean"] = x.sum()
            listed[0] = x.mean()
        return self.first(x) + own.mean * found["mean"] + listed[0], found["why"]


@case(declined="GM102-T11")
class a_key_is_new_in_a_dict_of_the_functions_own(Recording):
    def forward(self, x: Tensor) -> tuple[Tensor, list[str]]:
        found = {"a": "b"}
        if x.detach().max() > 3:
            found["why"] = "large"
        return self.first(x), list(found)


@case(declined="GM102-T11")
class an_item_is_popped_and_another_set(Recording):
    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        if x.detach().max() > 3:
            self.counts.popitem()
            self.counts["bad"] = 1
        return self.first(x), len(self.counts)


@case(declined="GM102-T09")
class only_the_class_has_it(Recording):
    kept = "class"

    def keep(self) -> None:
        self.kept = "own"

    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        if x.detach().max() > 3:
            self.keep()
        return self.first(x), self.kept
