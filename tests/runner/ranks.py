"""A training program of several processes, which prints what each has seen: graphs, losses and records.

argv: "torchrun" in a rank that a launcher has started, or a way to start two ranks or workers here.
"""

import logging
import os
import sys

import torch
import torch.distributed

log = logging.getLogger("ranks")
WORLD = int(os.environ.get("WORLD_SIZE", "2"))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 1)

    def forward(self, x):
        x = self.first(x)
        log.warning("the batch has %d rows", x.shape[0])
        if x.abs().max() > 1e4:
            x = x.clamp(-1e4, 1e4)
        return self.second(x).sum()


def train(rank, port):
    """Two steps of one rank."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}" if port else "env://", rank=rank, world_size=WORLD
    )
    graphs, records, losses = [], [], []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    log.addHandler(handler)
    log.propagate = False
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(Net())
    optimizer = torch.optim.AdamW(net.parameters())
    compiled = torch.compile(net, backend=lambda graph, _: graphs.append(graph) or graph.forward)
    for step in range(2):
        torch.manual_seed(10 * step + rank)
        loss = compiled(torch.randn(3, 4))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(round(loss.item(), 6))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    sys.stdout.write(f"{rank} {len(graphs)} {losses} {records}\n")
    sys.stdout.flush()
    os._exit(0)  # on a busy machine a thread of gloo aborts the end of a rank now and then, without the hook too


class Rows(torch.utils.data.Dataset):
    """Each row says how many graphs a compiled function had in the worker that made it."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        graphs = []
        net = Net()
        torch.compile(net, backend=lambda graph, _: graphs.append(graph) or graph.forward)(torch.ones(3, 4))
        return len(graphs)


if __name__ == "__main__":
    way, *port = sys.argv[1:]
    if way == "torchrun":
        train(int(os.environ["RANK"]), None)
    elif way == "spawn":
        torch.multiprocessing.spawn(train, (int(port[0]),), nprocs=2)
    else:
        log.disabled = True
        loader = torch.utils.data.DataLoader(Rows(), num_workers=2, multiprocessing_context=way)
        print([int(row) for row in loader])
