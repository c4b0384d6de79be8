"""Functions of a meter and a tensor that read numbers out of it; each is in one graph but for those of BREAKING."""

from __future__ import annotations

import json
import logging
import math

import torch

log = logging.getLogger(__name__)


def gives_numbers(meter, x):
    return x * 2, {"loss": x.sum().item(), "top": [x.max().item(), (x > 0).any().item()]}


def gives_texts(meter, x):
    value = x.sum().item()
    return x + 1, f"{value:>10.3f}", f"{round(value, 2)}"


def calculates(meter, x):
    value = x.sum().item()
    return x + 1, value / 3, value * 2 - 1, -value, abs(value), value == value, value < 2, not value, float(value)


def adds_up(meter, x):
    meter.total += x.sum().item()
    meter.total *= 2
    return x + 1, meter.total


def averages_a_loss(meter, x):
    meter.total = 0.99 * meter.total + 0.01 * x.sum().item()
    return x + 1


def averages_what_has_a_name(meter, x):
    value = x.sum().item()
    meter.total = 0.9 * meter.total + (1 - 0.9) * value
    meter.best = -(0.5 * meter.best) + value / 3
    return x + 1, meter.total


def averages_what_it_is_given(meter, x):
    _averaged(meter, x.mean().item(), len(x))
    return x + 1


def _averaged(meter, value, count):
    meter.total = meter.total * 0.5 + value * count
    meter.best = max(0.5 * meter.best, value)


def begins_with_the_first(meter, x):
    loss = x.sum()
    if meter.total is None:
        meter.total = loss.item()
    else:
        meter.total = 0.99 * meter.total + 0.01 * loss.item()
    meter.steps += 1
    return loss


def keeps_the_best(meter, x):
    meter.best = min(meter.best, x.sum().item())
    return x + 1


def counts_and_reads(meter, x):
    return x + 1, meter.best - x.sum().item(), x.mean().item() + 1.5


def stores_one_object_twice(meter, x):
    meter.last = meter.again = x.sum().item()
    return x + 1, meter.last is meter.again


def reads_before_a_write(meter, x):
    value = x.mean().item()
    x.add_(1)
    return x * 1, value


def reads_a_draw_that_nothing_uses(meter, x):
    torch.rand(3).sum().item()
    return x + torch.rand(1)


def reads_half_precision(meter, x):
    return x + 1, x.half().sum().item(), x.bfloat16().max().item(), x.double().sum().item()


def keeps_a_float(meter, x):
    meter.last = float(x.sum())
    return x + 1


def appends(meter, x):
    meter.history.append(x.sum().item())
    meter.history.append(round(x.max().item(), 1))
    return x + 1


def appends_to_a_deque_and_to_lists_in_a_dict(meter, x):
    meter.recent.append(x.sum().item())
    meter.lists["a"].append(float(x.mean()))
    meter.lists.setdefault("b", []).append(round(x.max().item(), 1))
    return x + 1


def appends_pairs_and_dicts(meter, x):
    meter.history.append((x.numel(), x.sum().item()))
    meter.history.append({"loss": x.mean().item(), "name": "loss"})
    return x + 1


def appends_lists_and_arrays(meter, x):
    meter.history.append(x.tolist())
    meter.history.append((x > 1).view(2, 3).tolist())
    meter.history.append((x * 2).numpy())
    return x + 1, (x / 2).tolist()


def appends_the_list_that_it_returns(meter, x):
    found = x.tolist()
    meter.history.append(found)
    return x + 1, found, found is meter


def changes_a_dict_that_was_appended(meter, x):
    found = {"loss": x.sum().item()}
    meter.history.append(found)
    found["more"] = 1
    return x + 1, found


def appends_a_tensor(meter, x):
    y = x * 2
    meter.history.append(y)
    y.add_(1)
    return y


def appends_an_array_that_is_written_to(meter, x):
    y = x * 2
    meter.history.append(y.numpy())
    y.zero_()
    return x + 1


def appends_behind_a_guard(meter, x):
    if x.sum() > 1000:
        raise ValueError("too large")
    meter.history.append(x.sum().item())
    return x + 1


def logs(meter, x):
    log.warning("mean %.3f of %d", x.mean().item(), x.numel())
    print("sum", round(x.sum().item(), 2))
    return x + 1


def logs_in_a_side(meter, x):
    if x.abs().max() > 2:
        log.warning("large: %s, %s", x.abs().max().item(), (x > 2).sum().item())
    return x * 2


class Average:
    def __init__(self):
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value, n):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


def averages(meter, x):
    meter.update(x.sum().item(), x.size(0))
    return x + 1


# --- those that need the number where it stands ----------------------------------------------------------------------


def decides(meter, x):
    value = x.sum().item()
    return x * 2 if math.isnan(value) or value > 1 else x * 3


def scales(meter, x):
    return x * x.sum().item()


def clamps(meter, x):
    value = x.abs().sum().item() + 1
    return x.clamp(max=value), torch.full((2,), value)


def divides_by_it(meter, x):
    return x + 1, 1.0 / (x.abs().sum().item() + 1)


def uses_it_as_a_key(meter, x):
    meter.seen[x.sum().item()] = 1
    return x + 1


def looks_at_the_list(meter, x):
    meter.history.append(x.sum().item())
    return x + len(meter.history)


def replaces_the_list(meter, x):
    meter.history.append(x.sum().item())
    meter.history = meter.history[-3:]
    return x + 1


def appends_through_two_names(meter, x):
    history = meter.history
    history.append(x.sum().item())
    meter.history.append(2.0)
    return x + 1


def changes_a_list_that_was_appended(meter, x):
    found = x.tolist()
    meter.history.append(found)
    found.append(len(found))
    return x + 1


def looks_at_the_deque(meter, x):
    meter.recent.append(x.sum().item())
    return x + len(meter.lists) + (0 if not meter.recent else 1)


def writes_json(meter, x):
    return x + 1, json.dumps({"loss": x.sum().item()})


def makes_a_tensor_of_it(meter, x):
    value = x.sum().item()
    return torch.tensor(value / 3), torch.tensor(value) * x, torch.tensor((x > 0).any().item())


def makes_a_tensor_of_several(meter, x):
    least, most = x.min().item(), x.max().item()
    meter.last = torch.tensor([least, 1e300, -0.0, math.nan, most]).mean().item()
    kept = torch.tensor((most, least), dtype=torch.float64)
    there = torch.tensor([least, most], dtype=x.dtype, device=x.device)
    mixed = torch.tensor((least, len(x), most)), torch.tensor([7, most], dtype=torch.float64)
    return (
        torch.tensor([least, most, 0.1]),
        torch.as_tensor([most]),
        kept,
        torch.tensor([least < 0, True]),
        there,
        mixed,
    )


def appends_to_lists_by_what_is_made_there(meter, x):
    lists = meter.lists
    for number, key in enumerate(("a", "b")):
        lists["" + key].append(x[number].item())
    return x + 1


def ends_the_graph_where_it_is_asked_for(meter, x):
    first = x.sum().item()
    x = x * 2
    second = x.max().item()
    x = x.relu() + 1
    return x * 3, json.dumps([first, second])


def asks_which_object_it_is(meter, x):
    positive = (x > 0).all().item()
    return x + 1, positive is True, positive is not None


def asks_for_its_methods(meter, x):
    value = x.sum().item()
    return x + 1, value.is_integer(), int(value), bool(value), value or 3, divmod(value, 2)


BREAKING = (decides, scales, clamps, divides_by_it, uses_it_as_a_key, looks_at_the_list, replaces_the_list)
BREAKING += (changes_a_list_that_was_appended, looks_at_the_deque)
BREAKING += (
    ends_the_graph_where_it_is_asked_for,
    appends_through_two_names,
    writes_json,
    asks_which_object_it_is,
    asks_for_its_methods,
)
