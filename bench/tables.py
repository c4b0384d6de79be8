"""Tables and plots out of the JSON under bench/results/: ``python -m bench.tables`` makes them anew."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from .breaks import PAPER, paper_totals, totals

RESULTS = Path(__file__).parent / "results"
Json = dict[str, Any]


@dataclass
class Table:
    title: str
    columns: Sequence[str]
    lines: Sequence[Sequence[object]]
    below: Sequence[str] = ()

    def show(self, console: Console) -> None:
        table = RichTable(title=self.title, title_justify="left")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left")
        for line in self.lines:
            table.add_row(*map(_cell, line))
        console.print(table)
        for text in self.below:
            console.print(text, highlight=False)
        console.print()

    def markdown(self) -> str:
        head = ["| " + " | ".join(self.columns) + " |", "|---" + "|---:" * (len(self.columns) - 1) + "|"]
        body = ["| " + " | ".join(map(_cell, line)) + " |" for line in self.lines]
        return "\n".join([f"### {self.title}", "", *head, *body, "", *self.below, ""])


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def breaks(result: Json) -> list[Table]:
    lines = result["lines"]
    columns = ["row", "arm", "graphs", "breaks", "paper leaves", "fullgraph", "inductor", "equal", "records equal"]
    columns += ["recompiled", "tracing s"]
    body = []
    for line in lines:
        paper = PAPER[line["row"]][2] if line["row"] in PAPER and line["arm"] == "on" else None
        if "died" in line:
            body.append([line["row"], line["arm"], line["died"], *[None] * 8])
            continue
        keys = ("fullgraph", "inductor", "equal", "records", "recompiled", "tracing_seconds")
        body.append([line["row"], line["arm"], line["graphs"], line["breaks"], paper, *[line.get(k) for k in keys]])
    ours, papers = totals(lines), paper_totals(lines)
    below = [
        f"All {ours['rows']} rows: {ours['before']} breaks without the hook, {ours['after']} with it "
        f"({_share(ours)} removed); {ours['to zero']} rows to zero.",
        f"The paper's rows that can be built here ({papers['rows']} of its 27): {papers['before']} breaks, of which we "
        f"leave {papers['after']} and the paper {papers['paper']}; to zero: ours {papers['to zero']}, the paper's "
        f"{papers['to zero in the paper']}.",
        "The paper, over all 27: 122 breaks, of which 34 are left; 21 rows to zero.",
        "Where the switches change no graph, what they would do under Inductor is what `off` does: not run again.",
    ]
    title = f"Graph breaks, transformers {result['versions']['transformers']}, torch {result['versions']['torch']}"
    return [Table(title, columns, body, below)]


def _share(found: dict[str, int]) -> str:
    return f"{(found['before'] - found['after']) / found['before']:.0%}" if found["before"] else "none to be"


def overhead(result: Json) -> list[Table]:
    made = []
    for title, arms in result["processes"].items():
        body = []
        for name, arm in arms.items():
            low, middle, high = arm["ratio"]
            seconds = arm["seconds"]
            spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
            body.append([name, statistics.median(seconds), spread, f"{middle:.3f}", f"{low:.3f} to {high:.3f}"])
            body[-1] += [f"{statistics.median(arm['peak_mib']):.0f}", f"{arm['peak_ratio']:.3f}"]
        columns = ["arm", "median s", "spread", "ratio", "quartiles", "peak MiB", "ratio "]
        made.append(Table(f"{title} ({len(seconds)} runs each, interleaved)", columns, body))
    made[-1].below = ["The paper: 11.5 % cold, 1.1 % cached."]
    for key, title in (
        ("forward", "Eager forward pass, mended to untouched code"),
        ("tracing", "Tracing, mended to untouched"),
    ):
        body = []
        for row, found in result[key].items():
            low, middle, high = found["ratio"]
            plain = f"{statistics.median(found['seconds']['off']) * 1e3:.2f}"
            spread = f"{low:.4f} to {high:.4f}"
            body.append([row, plain, f"{middle:.4f}", spread, found.get("changed_calls"), found.get("problem") or None])
        if body:
            columns = ["row", "untouched ms", "ratio", "quartiles", "calls of changed code", "problem"]
            made.append(Table(title, columns, body))
    return made


def latency(result: Json) -> list[Table]:
    made = []
    for name, measured in result["settings"].items():
        columns = ["row", "batch", "graphs off/on", "kernels off/on", "cold start", "less compilation", "steady state"]
        columns += ["items/s off", "items/s on", "problem"]
        body: list[list[object]] = []
        for found in measured:
            if "batches" not in found:
                body.append([found["row"], *[None] * 8, found["problem"]])
                continue
            for batch, one in found["batches"].items():
                off, on = one["cold"]["off"], one["cold"]["on"]
                low, middle, high = one["steady_speedup"]
                rest = [max(arm["first"] - arm["compiling"], 1e-9) for arm in (off, on)]
                body.append(
                    [
                        found["row"],
                        batch,
                        f"{one['launches']['off']['graphs']}/{one['launches']['on']['graphs']}",
                        _kernels(one),
                        f"{off['first'] / on['first']:.2f}x",
                        f"{rest[0] / rest[1]:.2f}x",
                        f"{middle:.2f}x ({low:.2f} to {high:.2f}){' slower' if one['slower'] else ''}",
                        f"{one['throughput']['off']:.1f}",
                        f"{one['throughput']['on']:.1f}",
                        one["problem"] or None,
                    ]
                )
        made.append(Table(f"Latency: {name}", columns, body, result.get("below", [])))
    return made


def _kernels(one: Json) -> str:
    """Kernels that a call launches on a CUDA device; on a CPU those that Inductor made."""
    on_device = [one["launches"][arm]["cuda_kernels"] for arm in ("off", "on")]
    return "/".join(map(str, on_device if any(on_device) else [one["cold"][arm]["kernels"] for arm in ("off", "on")]))


MAKERS: dict[str, Callable[[Json], list[Table]]] = {"breaks": breaks, "overhead": overhead, "latency": latency}


def of(path: Path) -> list[Table]:
    """The tables of one file of results, whose name begins with what it is of."""
    return MAKERS[path.stem.partition("-")[0]](json.loads(path.read_text(encoding="utf-8")))


def beside_the_paper(results: dict[str, Json]) -> Table:
    """What the paper claims, on an RTX 3090, and what was measured here on the same question."""
    breaks_of = paper_totals(results["breaks"]["lines"])
    ones = [
        one
        for measured in results["latency"]["settings"].values()
        for found in measured
        for one in found.get("batches", {}).values()
        if not one["problem"]
    ]
    first = [[one["cold"][arm]["first"] for arm in ("off", "on")] for one in ones]
    rest = [[one["cold"][arm]["first"] - one["cold"][arm]["compiling"] for arm in ("off", "on")] for one in ones]
    alone = [one for one in ones if one["throughput"]["off"] * statistics.median(one["steady_seconds"]["off"]) < 1.5]
    imports = results["overhead"]["processes"]["import: one model"]
    new = results["overhead"]["processes"]["import: one model, new machine"]["hook, no bytecode"]["ratio"][1]
    machine = results["latency"]["machine"]["gpu"] or results["latency"]["machine"]["processor"]
    return Table(
        f"Breaks, and latency on {machine}",
        ["claim", "the paper", "here"],
        [
            [
                "breaks left, on the rows that can be built here",
                f"{breaks_of['paper']} of {breaks_of['before']}",
                f"{breaks_of['after']} of {breaks_of['before']}",
            ],
            ["rows to zero, of those", breaks_of["to zero in the paper"], breaks_of["to zero"]],
            ["the six rows of models from the network", "15 of 33 left", "not measured: cannot be built here"],
            ["cold start, raw", "up to 24.7x", _range([off / on for off, on in first])],
            ["cold start less compilation", "1.2x to 3.3x", _range([off / on for off, on in rest])],
            ["steady state", "1.0x to 1.13x", _range([one["steady_speedup"][1] for one in ones])],
            ["throughput at batch 1", "1.7x where 49 launches vanish", _range([_gain(one) for one in alone])],
            ["import, empty cache", "11.5 % more", f"{imports['hook, empty cache']['ratio'][1] - 1:.1%} more"],
            ["the same, where the library has no bytecode either", "not said", f"{new - 1:.1%} more"],
            ["import, from the cache", "1.1 % more", f"{imports['hook, cached']['ratio'][1] - 1:.1%} more"],
        ],
    )


def _gain(one: Json) -> float:
    return float(one["throughput"]["on"] / one["throughput"]["off"])


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f}x to {max(values):.2f}x over {len(values)} measurements" if values else "not measured"


def plot_breaks(result: Json, target: Path) -> None:
    """Breaks left by row: without the hook, with PyTorch's switches, by the paper, with the hook."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "graphmend"  # the same file from the same numbers
    from matplotlib import pyplot

    lines = {(line["row"], line["arm"]): line.get("breaks") or 0 for line in result["lines"]}
    names = [row for row, arm in lines if arm == "off"]
    series = {
        "without the hook": [lines[name, "off"] for name in names],
        "PyTorch's switches": [lines[name, "knobs"] for name in names],
        "the paper": [PAPER[name][2] if name in PAPER else 0 for name in names],
        "with the hook": [lines[name, "on"] for name in names],
    }
    figure, axes = pyplot.subplots(figsize=(10, 4))
    width = 0.8 / len(series)
    for number, (label, values) in enumerate(series.items()):
        axes.bar([place + number * width for place in range(len(names))], values, width, label=label)
    axes.set_xticks([place + 1.5 * width for place in range(len(names))], names, rotation=45, ha="right")
    axes.set_ylabel("graph breaks")
    axes.legend()
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    console = Console(width=160)
    texts = []
    kept = {part: RESULTS / f"{part}-4.52.4.json" for part in ("breaks", "latency", "overhead")}
    if all(path.exists() for path in kept.values()):
        results = {part: json.loads(path.read_text(encoding="utf-8")) for part, path in kept.items()}
        compared = beside_the_paper(results)
        compared.show(console)
        texts += ["## Beside the paper", "", compared.markdown()]
    for path in sorted(RESULTS.glob("*.json")):
        tables = of(path)
        for table in tables:
            table.show(console)
        texts += [f"## {path.name}", "", *[table.markdown() for table in tables]]
        if path.stem.startswith("breaks"):
            plot_breaks(json.loads(path.read_text(encoding="utf-8")), path.with_suffix(".svg"))
    (RESULTS / "tables.md").write_text("\n".join(["# Results", "", *texts]), encoding="utf-8")


if __name__ == "__main__":
    main()
