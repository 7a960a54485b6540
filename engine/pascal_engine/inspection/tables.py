"""A report as tables for a terminal."""

from rich import box
from rich.console import Console
from rich.table import Table

from pascal_engine.hybrid.params import HyperParams
from pascal_engine.inspection.memory import KV_BYTES, Demand, Fit
from pascal_engine.inspection.report import Report, TypeCount


def show(report: Report, console: Console) -> None:
    """Prints all tables."""
    console.print(
        f"{report.name}: {show_count(report.n_parameters)} parameters, {show_size(report.size_bytes)}", markup=False
    )
    console.print(types_table(report.types))
    if report.params is None or report.demand is None:
        console.print(f"This engine cannot serve it: {report.problem}", markup=False)
        return
    console.print(_parameters(report.params))
    console.print(_memory(report.demand))
    console.print(_fits(report.fits))
    console.print(
        "Slots that fit beside the weights with f16 keys and values, each of so many tokens; 1 GB of a card and 2 GB of"
        " a machine are kept for everything else."
    )


def _table(title: str, *columns: str) -> Table:
    """The first column is text, the others are numbers."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    return table


def types_table(types: tuple[TypeCount, ...]) -> Table:
    """What each number format has of the tensors."""
    table = _table("Tensors", "type", "tensors", "parameters", "size", "bits a weight")
    for count in types:
        bits = f"{8 * count.n_bytes / count.n_parameters:.2f}"
        table.add_row(count.type, str(count.n_tensors), show_count(count.n_parameters), show_size(count.n_bytes), bits)
    return table


def _parameters(params: HyperParams) -> Table:
    n_recurrent = sum(params.recurrent)
    rows = [
        ("architecture", params.architecture),
        ("layers", f"{params.n_layers}: {n_recurrent} delta-net, {params.n_layers - n_recurrent} attention"),
        ("hidden size", str(params.hidden)),
        ("context length", f"{params.context_length:,}"),
        ("attention heads", f"{params.n_heads}, keys and values {params.n_kv_heads}, of {params.head_dim}"),
        ("rope", f"{params.rope_dim} dimensions, base {params.rope_base:,.0f}"),
    ]
    if params.delta_net is not None:
        delta = params.delta_net
        rows.append(("delta-net heads", f"{delta.n_value_heads}, keys {delta.n_key_heads}, of {delta.head_dim}"))
    if params.experts is None:
        rows.append(("feed-forward width", str(params.feed_forward)))
    else:
        experts = params.experts
        rows.append(("experts", f"{experts.n_experts} of width {experts.width}, {experts.n_used} for each token"))
        rows.append(("shared expert", f"of width {experts.shared_width}"))
    table = Table(title="Hyper-parameters", title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    for row in rows:
        table.add_row(*row)
    return table


def _memory(demand: Demand) -> Table:
    table = _table("Memory", "what", "size")
    table.add_row("weights, as in the file", show_size(demand.weights))
    table.add_row("recurrent state of one sequence", show_size(demand.state))
    for kind in KV_BYTES:
        table.add_row(f"keys and values of 1,000 tokens, {kind}", show_size(demand.kv(1000, kind)))
    return table


def _fits(fitting: tuple[Fit, ...]) -> Table:
    contexts = list(fitting[0].slots["f16"])
    table = _table("What fits where", "place", *(f"{context:,}" for context in contexts))
    for fit in fitting:
        slots = fit.slots["f16"]
        table.add_row(fit.place.name, *(f"{slots[context]:,}" if slots[context] else "-" for context in contexts))
    return table


def show_size(n_bytes: int) -> str:
    """In decimal units, as file managers and shops count."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.{2 if unit == 10**9 else 1}f} {name}"
    return f"{n_bytes} B"


def show_count(number: int) -> str:
    """In millions, or thousands of millions."""
    return f"{number / 1e9:.2f} B" if number >= 10**9 else f"{number / 1e6:.1f} M"
