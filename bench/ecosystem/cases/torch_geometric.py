"""torch_geometric: layers, pooling and utilities on a small graph."""

from __future__ import annotations

import torch
from torch_geometric import nn, utils
from torch_geometric.nn import aggr, models, norm, pool

from . import Case


def _edges(nodes: int = 8, edges: int = 20) -> torch.Tensor:
    return torch.randint(0, nodes, (2, edges))


def _graph() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(8, 6), _edges()


def _batched() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(8, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 2])


CASES: dict[str, Case] = {
    "GCNConv": (lambda: nn.GCNConv(6, 4), _graph),
    "GATConv": (lambda: nn.GATConv(6, 4, heads=2), _graph),
    "GATv2Conv": (lambda: nn.GATv2Conv(6, 4), _graph),
    "SAGEConv": (lambda: nn.SAGEConv(6, 4), _graph),
    "SAGEConv, lstm": (lambda: nn.SAGEConv(6, 4, aggr="lstm"), lambda: (torch.rand(8, 6), _edges().sort(1).values)),
    "GINConv": (lambda: nn.GINConv(torch.nn.Linear(6, 4)), _graph),
    "TransformerConv": (lambda: nn.TransformerConv(6, 4), _graph),
    "ChebConv": (lambda: nn.ChebConv(6, 4, 3), _graph),
    "PNAConv": (
        lambda: nn.PNAConv(6, 4, ["mean", "max"], ["identity", "amplification"], torch.tensor([0, 3, 3, 2])),
        _graph,
    ),
    "EdgeConv": (lambda: nn.EdgeConv(torch.nn.Linear(12, 4)), _graph),
    "GENConv": (lambda: nn.GENConv(6, 4), _graph),
    "HypergraphConv": (lambda: nn.HypergraphConv(6, 4), _graph),
    "TopKPooling": (lambda: pool.TopKPooling(6, 0.5), _graph),
    "SAGPooling": (lambda: pool.SAGPooling(6, 0.5), _graph),
    "ASAPooling": (lambda: pool.ASAPooling(6, 0.5), _graph),
    "EdgePooling": (lambda: pool.EdgePooling(6), lambda: (*_graph(), torch.zeros(8, dtype=torch.long))),
    "global_mean_pool": (lambda: pool.global_mean_pool, _batched),
    "global_max_pool": (lambda: pool.global_max_pool, _batched),
    "SortAggregation": (lambda: aggr.SortAggregation(3), _batched),
    "Set2Set": (lambda: aggr.Set2Set(6, 2), _batched),
    "SoftmaxAggregation": (lambda: aggr.SoftmaxAggregation(learn=True), _batched),
    "MedianAggregation": (aggr.MedianAggregation, _batched),
    "GraphNorm": (lambda: norm.GraphNorm(6), _batched),
    "InstanceNorm": (lambda: norm.InstanceNorm(6), _batched),
    "PairNorm": (norm.PairNorm, _batched),
    "DiffGroupNorm": (lambda: norm.DiffGroupNorm(6, 2), lambda: (torch.rand(8, 6),)),
    "GCN": (lambda: models.GCN(6, 8, 2, 4).eval(), _graph),
    "GraphUNet": (lambda: models.GraphUNet(6, 8, 4, 2).eval(), _graph),
    "to_dense_batch": (lambda: utils.to_dense_batch, _batched),
    "to_dense_adj": (lambda: utils.to_dense_adj, lambda: (_edges(),)),
    "to_undirected": (lambda: utils.to_undirected, lambda: (_edges(),)),
    "add_self_loops": (lambda: utils.add_self_loops, lambda: (_edges(),)),
    "remove_self_loops": (lambda: utils.remove_self_loops, lambda: (_edges(),)),
    "coalesce": (lambda: utils.coalesce, lambda: (_edges(),)),
    "degree": (lambda: lambda e: utils.degree(e[0]), lambda: (_edges(),)),
    "softmax": (lambda: utils.softmax, _batched),
    "scatter": (lambda: lambda x, b: utils.scatter(x, b, reduce="mean"), _batched),
    "subgraph": (lambda: lambda e: utils.subgraph(torch.tensor([1, 2, 3, 4]), e), lambda: (_edges(),)),
    "k_hop_subgraph": (lambda: lambda e: utils.k_hop_subgraph(1, 2, e), lambda: (_edges(),)),
    "get_laplacian": (lambda: lambda e: utils.get_laplacian(e, normalization="sym"), lambda: (_edges(),)),
    "dropout_edge": (lambda: lambda e: utils.dropout_edge(e, 0.3), lambda: (_edges(),)),
    "negative_sampling": (lambda: lambda e: utils.negative_sampling(e, 8, 5, method="dense"), lambda: (_edges(),)),
}
