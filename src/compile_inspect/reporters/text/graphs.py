"""Graphs: the operations of each stage, and the nodes of one compilation if it is selected."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Direction, Graph, Inspection, Node, Stage
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading, print_line
from compile_inspect.reporters.text.source import print_code
from compile_inspect.reporters.text.tables import print_listing
from compile_inspect.wording.compilations import by_identifier, grouped, title
from compile_inspect.wording.locations import user_line, where
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import TIMES, count

_MAX_OPERATIONS = 12


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print the graphs of every compilation; node by node with `--compilation` or `--all`."""
    if not inspection.graphs:
        captured = inspection.graph_count
        message = f"No graph was recorded, although torch captured {captured:,}: the summary shows what is missing."
        print_empty(console, inspection, message if captured else "No graphs: the traced code contained no tensor operation.")
        return
    compilations = by_identifier(inspection)
    for identifier, graphs in grouped(inspection.graphs, lambda graph: graph.compilation).items():
        print_heading(console, *title(identifier, compilations, inspection))
        symbols = compilations[identifier].dynamic_symbols if identifier in compilations else {}
        if symbols:
            symbols_text = ", ".join(f"{one_line(symbol)} = {one_line(value)}" for symbol, value in symbols.items())
            console.print(Text(f"  dynamic sizes: {symbols_text}", style="dim"), soft_wrap=True)
        if options.all or options.compilation is not None:
            for graph in graphs:
                _print_nodes(graph, inspection, console, options)
        else:
            _print_counts(graphs, console)
        console.print()


def _label(graph: Graph) -> str:
    if graph.stage is Stage.POST_GRAD and graph.direction is not Direction.UNKNOWN:
        return f"{graph.stage.value} {graph.direction.value}"  # the names of the other stages already include the direction
    return graph.stage.value


def _size(graph: Graph) -> str:
    if graph.from_text and not graph.nodes:
        return "only its printed form was recorded"
    read = ", read from its printed form" if graph.from_text else ""
    return f"{count(len(graph.nodes), 'node')}, {count(graph.call_count, 'call')}{read}"


def _print_counts(graphs: list[Graph], console: Console) -> None:
    captured = [graph for graph in graphs if graph.stage is Stage.DYNAMO]
    others = [graph for graph in graphs if graph.stage is not Stage.DYNAMO]
    for graph in captured:
        console.print(Text(f"  {_label(graph)}: {_size(graph)}"), soft_wrap=True)
        operations = list(graph.call_counts.items())
        print_listing(
            console,
            (),
            [(f"{times:,} {TIMES}", target) for target, times in operations[:_MAX_OPERATIONS]],
            styles=("bold", "green"),
            indent="    ",
        )
        print_folded(console, len(operations) - _MAX_OPERATIONS, "operation", indent="    ")
    if others:
        later_stages = "; ".join(f"{_label(graph)}, {_size(graph)}" for graph in others)
        print_line(console, Text(f"  then: {later_stages}", style="dim"))


def _print_nodes(graph: Graph, inspection: Inspection, console: Console, options: ShowOptions) -> None:
    console.print(Text(f"  {_label(graph)}", style="bold").append(f": {_size(graph)}", style="not bold"))
    if not graph.nodes:
        print_code(console, graph.text)
        return
    visible = options.first(graph.nodes)
    print_listing(
        console,
        ("Name", "Target", "Type", "Line"),
        [
            (
                node.name,
                _target(node),
                ", ".join(map(str, node.value)) or "-",
                where(user_line(inspection, node.stack)),
            )
            for node in visible
        ],
        styles=("bold", "green", "", "cyan"),
        indent="    ",
        keep_ends=(3,),
        whole=options.all,
    )
    print_folded(console, len(graph.nodes) - len(visible), "node", indent="    ")


def _target(node: Node) -> str:
    if node.is_call or node.target == node.operation:
        return node.target
    return f"{node.operation} {node.target}"
