"""What docs/explanation/common-wrong-statements.md says about torch.compile with PyGRANSO, run."""

from __future__ import annotations

from typing import Any


def main() -> None:
    import torch
    from pygranso.pygranso import pygranso
    from pygranso.pygransoStruct import pygransoStruct

    graphs: list[Any] = []

    def counting(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def solved(name: str, variables: Any, function: Any, start: torch.Tensor) -> None:
        options = pygransoStruct()
        options.torch_device, options.x0 = torch.device("cpu"), start
        options.print_level, options.quadprog_info_msg, options.maxit = 0, False, 50
        graphs.clear()
        found = pygranso(var_spec=variables, combined_fn=function, user_opts=options)
        print(
            f"{name}: {found.fn_evals} evaluations, {len(graphs)} graph, code {found.termination_code}, f {found.final.f:.6f}"
        )

    @torch.compile(backend=counting)
    def rosenbrock(x: torch.Tensor) -> torch.Tensor:
        return (8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2).sum()

    def constrained(variables: Any) -> tuple[Any, Any, None]:
        inequalities = pygransoStruct()
        inequalities.first = 2**0.5 * variables.x[0] - 1
        return rosenbrock(variables.x), inequalities, None

    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1).double()
    data = torch.randn(8, 2, dtype=torch.double)

    def fitted(compiled: Any) -> tuple[Any, None, None]:
        return (compiled(data) - data.sum(1, keepdim=True)).abs().mean(), None, None

    solved("a compiled function", {"x": [2, 1]}, constrained, torch.tensor([[0.75], [0.5]], dtype=torch.double))
    weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach().reshape(-1, 1)
    solved("a compiled module", torch.compile(model, backend=counting), fitted, weights)


if __name__ == "__main__":
    main()
