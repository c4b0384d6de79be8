"""Functions and modules that read numbers out of tensors; the tests import this file as it is, and mended."""

from __future__ import annotations

import logging

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

logger = logging.getLogger(__name__)


def made_of_a_shape(x):
    half = torch.tensor(x.shape[0]) // 2
    return x[: half.item()] * 2


def made_of_a_list(x, shapes=((2, 3), (1, 2))):
    sizes = torch.as_tensor(shapes, dtype=torch.long)
    pieces, start = [], 0
    for height, width in sizes:
        pieces.append(x.flatten()[start : start + height * width].view(height, width).sum(1))
        start = start + height * width
    return torch.cat(pieces) + torch.linspace(0.5, 2.5, sizes.sum(1)[1]).sum()


def kinds(x):
    """Every kind of number, in every shape of list, as eager gives it."""
    floats = torch.tensor([0.1, float("inf"), -0.0, 1e-45])
    half = torch.tensor(0.1, dtype=torch.float16)
    bools = torch.tensor([[True, False], [False, False]])
    found = [
        floats.tolist(),
        half.item(),
        bools.tolist(),
        torch.tensor(7).tolist(),
        torch.tensor([[[3], [4]]]).tolist(),
    ]
    return x, repr(found), [type(found[1]), type(found[2][0][0]), type(found[3])]


def transposed(x):
    """As evolla has it: a mask that is made of ones, through views."""
    batch = torch.ones(2, dtype=torch.bool)
    mask = torch.ones(2, 3) * batch.expand(3, 2).T
    mask.mT[1, 0] = 5.0
    return x[: mask.T.sum().int().item() // 4] * mask.mT[1].sum().item()


def squeezed(x):
    """A size that is 1 now and then is squeezed out of the shape, which the program reads."""
    count = (x[:, 0] > 0).sum().item()
    rows = x[:count]
    shapes = rows.squeeze().shape, torch.squeeze(input=rows, dim=0).dim(), rows[None].squeeze((0, 1)).shape
    return shapes, rows.squeeze(-1).shape, torch.ones(()).squeeze().squeeze(0) + rows.squeeze().sum()


class Padding(nn.Module):
    """As mimi has it: paddings are buffers, and tensors calculated from them."""

    def __init__(self):
        super().__init__()
        self.stride = nn.Buffer(torch.tensor(4), persistent=False)
        self.kernel = nn.Buffer(torch.tensor(5))
        self.total = self.kernel - self.stride

    def extra(self, x):
        frames = torch.ceil((x.shape[-1] - self.kernel + self.total) / self.stride + 1).to(torch.int64) - 1
        return frames * self.stride + self.kernel - self.total - x.shape[-1]

    @staticmethod
    def pad(x, paddings: tuple[int, int], mode="constant"):
        return F.pad(x, paddings, mode, 0.5)

    def forward(self, x):
        return self.pad(x, (self.total, self.extra(x))) * 2


class Steered(nn.Module):
    """As eomt has it: a buffer of floats decides, and the sides cannot both be evaluated."""

    def __init__(self):
        super().__init__()
        self.probs = nn.Buffer(torch.tensor([1.0, 0.0]))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        for index in range(2):
            if index >= 0 and (self.training or self.probs[index] > 0):
                x = torch.linalg.matrix_exp(self.layer(x[:4]))
        return x


class Grid(nn.Module):
    """As the qwen family has it: a small input says how the rows are parted."""

    def forward(self, x, grid):
        sizes = (grid.prod(-1) // 2).tolist()
        return torch.stack([part.sum(0) for part in x.split(sizes)])


def in_comprehensions(x):
    counts = torch.tensor([3, 5])
    pieces = [part.sum() + [4, 5][counts.argmax().item()] for part in x.split(counts.tolist())]
    pick = lambda place: counts[place].item()  # noqa: E731
    return torch.stack([*pieces, x[pick(0), 0]])


def written_to(x):
    count = torch.zeros(2, dtype=torch.long)
    count[0] = 3
    return x[: count[0].item()]


def written_through_a_view(x):
    counts = torch.ones(2, dtype=torch.long)
    first = counts[:1]
    first.add_(2)
    return x[: counts[0].item()]


def decided_by_a_written_input(x, scale, kept):
    scale.mul_(2)
    if scale.float().mean() >= 3:
        kept.reshape(-1)[0] = 0
    return x * 2


def decided_by_a_written_copy(x, scale, kept):
    copied = scale.clone()
    copied.add_(kept - kept + 1)
    if (copied == scale).all():
        return 5
    return copied


def decided_by_a_written_mask(x, scale, kept):
    scale.mul_(2)
    if (scale > 3).all():
        kept.reshape(-1)[0] = 0
    return x * 2


def settles(x):
    """A loop of as many steps as the data says."""
    old, y = -torch.ones_like(x), (x * 2).round()
    while ((old - y).abs() != 0).any():
        old = y.clone()
        y = (y * 0.5).floor().clamp(min=1)
    return y + 1


def counts_down(x, steps):
    left = torch.tensor(3)
    while (left > 0).all():
        left = left - 1
        x = x * 2
    return x + steps


def puts_by_a_truth(x, c):
    chosen = (x > 0) & (c > 0)
    y = torch.ones_like(x)
    y[chosen] = 1 - x[chosen] / 2
    y[(x > 0) & ~chosen] = 0.0
    return y + 1


def takes_by_a_truth(x, c):
    chosen = (x > 0) & (c > 0)
    return (x[chosen] * 2).sum() + 1


def written_input(x, count):
    count.add_(1)
    return x[: count.item()]


def written_alias(x, count, alias):
    alias.add_(2)
    return x[: count.item()]


def written_after(x):
    count = torch.ones((), dtype=torch.long)
    taken = x[: count.item()]
    count.add_(5)
    return taken + count


def written_by_a_mask(x):
    counts = torch.arange(4)
    counts[counts > 2] = 7
    counts *= 2
    return x[: counts.max().item() // 2]


def written_elsewhere(x):
    count = torch.ones(1, dtype=torch.long)
    torch.add(count, 2, out=count)
    return x[: count.item()]


def random_count(x):
    return x[: torch.randint(1, 4, ()).item()]


def counted(x):
    """A split by sizes that the data decides: symbols of the graph."""
    counts = torch.stack([(x[:, 0] > 0).sum(), (x[:, 0] <= 0).sum()])
    order = (x[:, 0] <= 0).long().sort(stable=True)[1]
    first, second = x[order].split(counts.tolist())
    return torch.cat([first * 2, second - 1])


def counted_and_tested(x):
    count = (x[:, 0] > 0).sum().item()
    if count > 2:
        return x.sin() * count
    return x.cos() * count


def decided_in_autocast(x, scale):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        small = (scale * 1.001).prod().ceil().to(torch.int64)
        return x[: small.item()]


def decided_by_a_flag(x, mask):
    """As longformer has it: one flag of the whole mask steers, again and again."""
    any_masked = (mask > 0).flatten().any().item()
    for _ in range(2):
        if any_masked:
            x = torch.cat([x, x.flip(0)])[: x.shape[0]] + 1
        else:
            x = x.double() * 2
    return x


def joined_with_an_item(x, mask, positions):
    """As the masks of Mamba layers: nothing says that `positions` is a tensor."""
    used = mask
    if positions[0] > 0 or (mask is not None and torch.all(mask == 1)):
        used = None
    return x * 2 if used is None else x * used


def up_to_the_last_position(x, positions):
    length = positions[-1] + 1
    return torch.full((2, length), 3.0) * x[:2, :length]


class Unmergeable(torch.nn.Module):
    """A branch whose sides cannot be merged; the buffer decides, and then its guard."""

    def __init__(self):
        super().__init__()
        self.register_buffer("flag", torch.zeros(()))

    def forward(self, x):
        x, kind = x * 2, "plain"
        if self.flag > 0:
            kind = "other"
        return x + len(kind)


def rows_by_size(x, sizes):
    """As pixtral and mistral3 have it: sizes are rows of a small input, looked at in comprehensions."""
    parts = [part[: (size[0] // 2), : (size[1] // 2)] for part, size in zip((x, x * 2), sizes)]
    shapes = [(size[0] // 2, size[1] // 2) for size in sizes]
    counts = [height * width for height, width in shapes]
    flat = torch.cat([part.reshape(-1) for part in parts])
    found = []
    for index, piece in enumerate(flat.split(counts)):
        height, width = shapes[index]
        found.append(piece.view(height, width).sum(0))
    return torch.cat(found)


def longer_than(x, length=None):
    """As idefics has it: a parameter that is handed a tensor."""
    if length > 4:
        return x * 2
    return torch.cat([x, x])


def called_longer_than(x):
    return longer_than(x, torch.tensor(x.shape[0]))


def arranged(x, seqlen: int):
    return torch.arange(seqlen, dtype=x.dtype) * x.sum()


def arranged_by_a_tensor(x, grid):
    """As qwen2_vl has it, whatever the annotation says."""
    return arranged(x, grid[:, 1:].max())


def resized(x, height: int, width: int):
    return torch.nn.functional.interpolate(x[None, None], size=(height, width), mode="nearest")


def resized_by_tensors(x, grid):
    """As hunyuan_vl has it, whatever the annotation says."""
    return [resized(x, height, width) for height, width in grid]


def parted(x, starts):
    """As qwen2_5_vl and xmod have it."""
    starts = torch.unique_consecutive(starts)
    values, counts = torch.unique_consecutive(starts // 3, return_counts=True)
    pieces = x.split(counts.tolist())
    return torch.stack([piece.sum(0) * value for piece, value in zip(pieces, values)]), torch.unique(starts % 2)


def windows(x, lengths):
    """As qwen3_asr has it: a list of numbers becomes a tensor, and some of them are tensors."""
    found = [0]
    for length in lengths:
        found += [3] * (length // 3)
        rest = length % 3
        if rest != 0:
            found += [rest]
    ends = torch.tensor(found, device=x.device).cumsum(-1, dtype=torch.int32)
    return torch.stack([piece.sum(0) for piece in x.split((ends[1:] - ends[:-1]).tolist())])


def repeated_list(x, lengths):
    """As qwen3_asr has it."""
    bounds = [0]
    for length in lengths:
        bounds += [2] * (length // 2)
        rest = length % 2
        if rest != 0:
            bounds += [rest]
    return torch.tensor(bounds).cumsum(0) * x.sum()


def fractions(x, mask):
    """As idefics3 has it: floats of a whole number that a long input gives."""
    rows = mask[:, 0].sum()
    return torch.arange(0, 1 - 1e-6, 1 / rows) * x.sum()


def increased(x, y, mask: torch.Tensor):
    """As higgs_audio has it: a layer for the rows of a mask, added to them."""
    x = x * 1
    made = y[~mask].tanh()
    x[~mask] += made.to(x.dtype)
    x[mask] *= 3
    return x


def moved(x, y, mask: torch.Tensor):
    """Elements that a mask selects are written back to the same places, as Vits has it."""
    x, y = x * 1.1 + 0.3, y * 0.7 - 0.1
    x[mask] = y[mask]
    return x * 3.3


def moved_in_the_callers_tensor(x, y, mask: torch.Tensor):
    x[mask] = y[mask]
    x[~mask] += y[~mask]
    return x.sum()


def masked_rows_again(x, mask: torch.Tensor):
    """A mask of what a mask has selected."""
    rows = x[mask]
    return rows[rows.sum(-1) > 0].sum(0)


def tested_with_numpy(x, height):
    """As llava_next has it: a test of numbers of numpy, of shapes."""
    if np.prod(x.shape) % (height * 2) != 0 and height > 1:
        return x * 2
    return torch.cat([x, x])


def any_of_a_mask(x, rows):
    """As smolvlm has it: Python's own `any`, of the elements of a tensor."""
    found = x[rows, 0] > 100
    if not any(found):
        found[0] = True
    return x[rows][found].sum(0), all(rows >= 0)


def counted_off(x, places):
    """As qwen2_vl has it."""
    images, videos = (places == 1).sum(), (places == 2).sum()
    for step in range(images + videos):
        x = x + step
    return x


def sized(x, counts: torch.Tensor):
    count = counts.sum()
    rows = x.new_full(size=(count, 4), fill_value=2.0).tile(count, 1)
    best = torch.topk(x, k=count, dim=0)[0]
    least = x.kthvalue(count, dim=0)[0] + x.select(0, count) + x.sum_to_size(count // 2, 4)
    return rows.sum(0) if best.shape[0] > 1 else best.sum(0), least, x.tril(diagonal=count), torch.triu(x, count)


def repeated(x, counts: torch.Tensor):
    """Each count is of one row, a single one of all of them."""
    rows = (x + 1).repeat_interleave(counts, dim=0) * 2
    return rows, torch.repeat_interleave(counts) + 1, x[0].repeat_interleave(repeats=counts[:1])


def fractions_of_what_is_written_later(x, mask):
    rows = mask[:, 0].sum()
    step = 1 / rows
    rows.clamp_(max=3)
    return torch.arange(0, 1 - 1e-6, step) * x.sum() * rows


def fails_under_capture(x):
    """What is captured fails on the shapes at hand."""
    return x[x > 0, 0, 0]


def places_of_a_mask(x, mask):
    """Places in rows and columns, and how they are laid out."""
    return mask.nonzero(), x.sum()


def selects_under_a_mask_that_does_not_fit(x, y, mask: torch.Tensor):
    """Its places are within the first tensor and not within the second, or within both."""
    return x[:, mask].sum() + y[..., mask, 0].sum() + y[None, mask].sum()


def writes_under_a_mask_that_does_not_fit(x, y, mask: torch.Tensor):
    """The same, written to."""
    x, y = x * 1, y * 1
    x[mask] = 1.0
    y[mask, :] = 2.0
    y[..., mask] = 3.0
    return x, y


def writes_as_many(x, mask: torch.Tensor, made):
    """As many rows as the mask has."""
    x = x * 2
    x[mask] = made + 1
    return x


def reshapes_what_is_selected(x, mask: torch.Tensor, rows):
    """A size that fits some of the data."""
    logger.warning("%s", x.shape)
    return x[mask].reshape(rows, 3)


def counts_off_what_is_expanded(x, count):
    """A number of the data, as a size that may be 1."""
    return (x + 1)[: count.max().item()].expand(3, 4) * 2


def draws_and_adds_what_is_selected(x, count):
    """Random numbers that are drawn before the graph fails."""
    drawn = torch.rand(3, 4)
    return (x + 1)[: count.max().item()].expand(3, 4) + drawn + torch.rand(3, 1)


def checks_what_is_selected(x, mask: torch.Tensor):
    """The program's own check has its own text."""
    rows = x[mask]
    torch._check(rows.shape[0] == 3, lambda: "three rows are needed")
    return rows.reshape(3, 4)


def writes_to_what_came_in(x, mask: torch.Tensor, rows):
    """What came in has been written to by then."""
    x += 1
    return x[mask].reshape(rows, 3)


def multiplied_by_as_many_rows(x, count):
    """As vits has it: a product of matrices, whose size Inductor compares with 1."""
    rows = torch.arange(count.max().item()).unsqueeze(0).unsqueeze(-1) < count.view(1, 1, -1)
    return torch.matmul(rows.to(x.dtype), x.expand(250, 8, 4).reshape(1, 2000, 4))


def cut_off_where_the_data_says(x, y):
    count = (y > 0).sum()
    return x.softmax(-1).reshape(-1)[:count]


def convolved_as_many_rows(x, count):
    """As vits has it: what a mask selects lowers, a convolution whose size is another number of the data does not."""
    chosen = x.expand(250, 8, 4).reshape(2000, 4)[count > 3] * 2
    rows = torch.arange(count.max().item()).unsqueeze(0).unsqueeze(-1) < count.view(1, 1, -1)
    spoken = torch.matmul(rows.to(x.dtype), x.expand(250, 8, 4).reshape(1, 2000, 4)).transpose(1, 2)
    return chosen, torch.nn.functional.conv1d(torch.flip(spoken, [1]), torch.ones(64, 4, 1))


def moves_under_a_mask_without_dimensions(x):
    x = x.sum()
    kept = x[...]
    mask = kept > 0
    x[mask] = kept[mask]
    return x


def drawn(count):
    """No tensor comes in: what the frame is given is a number."""
    x = torch.rand(count, 4)
    return x[x[:, 0] > 0.5] * 2


def pieces(x):
    """As detectors have it: some rows of each class, and a decision about all of them."""
    found = []
    for number in range(40):
        column = x[:, number % 4] * number
        found.append(column[column > 3] + 1)
    joined = torch.cat(found)
    if joined.numel() > 30:
        return joined.sum()
    return joined * 2


def squeezed_piece(x, total):
    return total + x[x > 0].squeeze().sum()


def squeezed_one_after_the_other(x):
    """Strides of what is squeezed depend on a size, so each read breaks the graph."""
    total = x * 0
    total = squeezed_piece(x, total)
    total = squeezed_piece(x - 1, total)
    return total


def pieces_of_parts(x):
    return pieces(x + 1) + pieces_in_another_function(x)


def pieces_in_another_function(x):
    low = x[x < 0] * 2
    if low.numel() > 10:
        low = low - 1
    return low.sum()


def decided_by_a_float(x, sign):
    """Of a product with a float that varies PyTorch's fake tensor says that it is NaN."""
    if (torch.sigmoid(sign * torch.as_tensor(-10.0)) > 0.5).all():
        return x[:2]
    return x


class ByDevice(torch.nn.Module):
    """Dynamo's expression for the tensor calls `device`."""

    def __init__(self):
        super().__init__()
        self.counts = {torch.device("cpu"): torch.tensor([2, 2])}

    def forward(self, x):
        count = self.counts[torch.device("cpu")].sum().item()
        return x[:count] * 2
