"""Functions that add to numbers of an object's, or of a dict's, which nothing in the graph needs."""

from __future__ import annotations

import torch

COUNTS = {"calls": 0}


class Meter:
    def __init__(self) -> None:
        self.sum = self.avg = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


def a_meter(state, x):
    y = x * 2
    state.meter.update(y.mean().item(), x.size(0))
    return y


def a_meter_of_counts(state, x):
    y = x * 2
    state.meter.update((y > 0).sum().item(), len(x))
    return y


def an_accuracy(state, x):
    y = x * 2 - 1
    state.correct += (y > 0).sum().item()
    state.seen += y.numel()
    state.accuracy = state.correct / state.seen
    print(f"{state.accuracy:.3f} of {state.seen}")
    return y


def a_period(state, x):
    state.step += 1
    y = x + 1
    if state.step % state.every == 0:
        y = y * 2
    return y


def a_decaying_float(state, x):
    state.rate *= 0.5
    state.rate -= 0.125
    if state.rate < -0.2:
        state.rate += 1
    return x + 1


def counts_in_a_dict_and_in_a_list(state, x):
    state.table["a"] += 2
    state.table["b"] -= x.size(0)
    state.numbers[1] += 0.5
    COUNTS["calls"] += 1
    return x * 3


def counts_through_a_property(state, x):
    state.doubled += 1
    return x * 3


def counts_in_a_long_loop(state, x):
    for _ in range(2000):
        state.step += 1
    return x * 3


def adds_floats_in_a_loop(state, x):
    for _ in range(40):
        state.rate += 0.1
    return x * 3


def a_mean_that_is_fed_back(state, x):
    loss = x.sum().item()
    state.rate = 0.9 * state.rate + 0.1 * loss
    state.step = state.step + 1
    return x * 1


def counts_until(state, x):
    while state.step % 4 < 3:
        state.step += 1
    state.step += 1
    return x + 1


def appends_to_a_list_in_a_dict_in_a_dict(state, x):
    state.lists["train"]["loss"].append(x.sum().item())
    state.lists["train"][f"{state.name}/max"].append(x.max().item())
    return x + 1


def appends_under_a_new_key(state, x):
    for name, value in {"sum": x.sum(), "max": x.max()}.items():
        if name not in state.found.keys():  # noqa: SIM118
            state.found[name] = [value.item()]
        else:
            state.found[name].append(value.item())
    return x + 1


def counts_behind_a_guard(state, x):
    state.step += 1
    if (x > 40).any():
        raise ValueError(f"too large: {x.max().item()}")
    state.seen += x.numel()
    return x + 1


def stores_what_it_has_counted(state, x):
    y = x / (1 + state.step - state.last)
    state.step += 1
    if state.step % 3 == 0:
        print("step", state.step)
        state.last = state.step
    return y


def halves_in_a_loop(state, x):
    state.step += 40
    for part in range(3):
        state.step += part
        state.step //= 2
        state.avg = 7 / state.step
    return x * 1


# Those that need the number itself, or that no guard can tell.


def scales_by_it(state, x):
    state.step += 1
    return x * state.step


def sizes_by_it(state, x):
    state.step += 1
    return x.new_ones(state.step) + x.sum()


def names_by_it(state, x):
    state.step += 1
    state.texts[f"step {state.step}"] = 1
    return x + 1


def divides_by_what_is_below_zero(state, x):
    state.below += 1
    state.avg = x.sum().item() / state.below
    return x + 1


def adds_many_floats(state, x):
    for _ in range(400):
        state.rate += 0.1
    return x * 3


def needs_its_power(state, x):
    state.step += 1
    return x / (1 - 0.9**state.step)


def may_be_tensors(state, x):
    state.total += x.sum()
    state.step += 1
    return x + state.total


def handles_a_missing_key(state, x):
    try:
        state.kept["a"].append(x.sum().item())
    except KeyError:
        x = x * 3
    return x + 1


NEEDING = (
    scales_by_it,
    sizes_by_it,
    names_by_it,
    divides_by_what_is_below_zero,
    adds_many_floats,
    needs_its_power,
    handles_a_missing_key,
)


class State:
    def __init__(self) -> None:
        self.meter = Meter()
        self.correct = self.seen = self.step = self.last = 0
        self.accuracy, self.rate, self.every, self.below, self.name = 0.0, 1.0, 3, -3, "eval"
        self.table, self.numbers = {"a": 0, "b": 1.5}, [1, 2.0, 3]
        self.lists = {"train": {"loss": [], "eval/max": []}}
        self.found: dict[str, list[float]] = {}
        self.kept: dict[str, list[float]] = {"a": []}
        self.texts: dict[str, int] = {}
        self.total = torch.zeros(())

    @property
    def doubled(self):
        return self.step * 2

    @doubled.setter
    def doubled(self, value):
        self.step = value
