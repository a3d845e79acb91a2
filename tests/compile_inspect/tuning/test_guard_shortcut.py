"""A shortcut through a guard holds only where the guard does, and is found again after assignments that do not matter."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from threading import Thread, Timer
from time import perf_counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from tuning_state.programs import PROGRAMS

from compile_inspect.torch_private.guard_shortcut import Shortcut
from compile_inspect.torch_private.object_memory import supported
from compile_inspect.tuning.fused_call import Body, fuse
from compile_inspect.variants import Task, guard
from compile_inspect.variants.guard import Guard

pytestmark = pytest.mark.skipif(not supported(), reason="this interpreter keeps no versions of dictionaries")


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def check(task: Task) -> tuple[Guard, Callable[..., str]]:
    """A guard, and what comes of a call: the fast way or another one."""
    found = task.program.guard
    return found, fuse(found, Body(('return "fast"',), {}), lambda args, kwargs: "elsewhere")


def scope_of(task: Task) -> dict[str, Any]:
    return {"function": task.function, "args": task.args, "kwargs": task.kwargs}


def only(found: Guard) -> Shortcut:
    (shortcut,) = found._shortcuts.values()
    return shortcut


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4))
        self.scale, self.names, self.options = 2.0, ["a"], {"shift": 1.0}

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x) * self.scale + self.options["shift"] + len(self.names)


X = torch.randn(3, 4)


@pytest.mark.usefixtures("always_shortcuts")
@pytest.mark.parametrize("name", ["GPT-2", "BERT", "dataclass config"])
def test_models_are_left_to_words(name: str) -> None:
    function, args, kwargs = PROGRAMS[name]()
    task = Task(function, args, kwargs)
    found, checked = check(task)
    assert checked(*args, **kwargs) == "fast"
    own = [source for source in only(found).retained_sources if "L['args']" not in source and "L['kwargs']" not in source]
    assert len(own) < 25, "of the hundreds of nodes of the function itself, next to none is left"


@pytest.mark.usefixtures("always_shortcuts")
def test_an_assignment_that_does_not_matter_costs_one_look() -> None:
    model = Scaled()
    found, checked = check(Task(model, (X,)))
    before = only(found)
    model.comment = "nothing reads it"
    assert not before.holds(scope_of(Task(model, (X,))), found._surroundings.scope)
    assert checked(X) == "fast"
    assert only(found) is not before
    assert only(found).holds(scope_of(Task(model, (X,))), found._surroundings.scope)


CHANGES: dict[str, Callable[[Scaled], object]] = {
    "attribute": lambda model: setattr(model, "scale", 3.0),
    "dictionary": lambda model: model.options.update(shift=0.5),
    "list": lambda model: model.names.append("b"),
    "replaced list": lambda model: setattr(model, "names", ["a", "b"]),
    "attribute of a layer": lambda model: setattr(model.layers[2], "eps", 0.1),
    "hook": lambda model: model.layers[0].register_forward_hook(lambda *_: None),
    "parameter": lambda model: setattr(model.layers[0], "weight", nn.Parameter(torch.zeros(4, 4))),
    "shape of a parameter": lambda model: model.layers[0].weight.data.t_(),
    "class": lambda model: setattr(model.layers[1], "__class__", nn.Tanh),
    "method": lambda model: setattr(model, "forward", lambda x: x),
    "layer": lambda model: model.layers.__setitem__(1, nn.Tanh()),
    "requires_grad": lambda model: model.layers[0].weight.requires_grad_(False),
}


@pytest.mark.usefixtures("always_shortcuts")
@pytest.mark.parametrize("change", CHANGES)
def test_a_shortcut_never_holds_where_the_guard_does_not(change: str) -> None:
    model = Scaled()
    task = Task(model, (X,))
    found, checked = check(task)
    shortcut, scope = only(found), scope_of(task)
    assert shortcut.holds(scope, found._surroundings.scope)
    CHANGES[change](model)
    guarded = task.program.fullgraph.check(scope) and found._surroundings.check(found._surroundings.scope)
    assert not shortcut.holds(scope, found._surroundings.scope) or guarded
    assert checked(X) == ("fast" if guarded else "elsewhere")


@pytest.mark.usefixtures("always_shortcuts")
@pytest.mark.parametrize("mode", [torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16), torch.enable_grad])
def test_modes_are_looked_at_anew(mode: Callable[[], Any]) -> None:
    model = Scaled()
    task = Task(model, (X,))
    found, _ = check(task)
    with mode():
        assert not only(found).holds(scope_of(task), found._surroundings.scope)
    assert only(found).holds(scope_of(task), found._surroundings.scope)


WEIGHT = torch.randn(3, 4)


def add_weight(x: Tensor) -> Tensor:
    return x + WEIGHT


@pytest.mark.usefixtures("always_shortcuts")
def test_an_input_that_is_a_held_tensor() -> None:
    task = Task(add_weight, (X,))
    found, checked = check(task)
    assert checked(X.clone()) == "fast"
    assert checked(WEIGHT) == "elsewhere"
    assert not only(found).holds({"function": add_weight, "args": (WEIGHT,), "kwargs": {}}, found._surroundings.scope)


def test_an_object_that_is_assigned_to_all_the_time_is_left_to_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "is_quicker", lambda one, other: True)
    model = Scaled()
    task = Task(model, (X,))
    found, checked = check(task)
    for step in range(200):
        model.last_step = step
        assert checked(X) == "fast"
    shortcut = only(found)
    assert "L['function'].scale" in shortcut.retained_sources
    assert not any("layers" in source and "eps" in source for source in shortcut.retained_sources)
    model.last_step = -1
    assert shortcut.holds(scope_of(task), found._surroundings.scope)
    model.scale = 5.0
    assert checked(X) == "elsewhere"


def test_a_shortcut_is_taken_only_where_it_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "is_quicker", lambda one, other: False)
    found, checked = check(Task(Scaled(), (X,)))
    for _ in range(3):
        assert checked(X) == "fast"
    assert found._shortcuts == {}
    assert not found._awaits_shortcut


def test_what_cannot_be_walked_is_left_to_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("odd objects")

    monkeypatch.setattr("compile_inspect.torch_private.fullgraph.Shortcut", fail)
    model = Scaled()
    found, checked = check(Task(model, (X,)))
    assert checked(X) == "fast"
    assert found._shortcuts == {}
    model.scale = 5.0
    assert checked(X) == "elsewhere"


class Slotted:
    __slots__ = ("k",)


@pytest.mark.usefixtures("always_shortcuts")
def test_an_object_that_comes_to_lie_where_another_was() -> None:
    holder = Slotted()
    holder.k = float("2")
    _, checked = check(Task(lambda x: x * holder.k, (X,)))
    holder.k = float("2")  # an equal one, which only the shortcut can hold
    assert checked(X) == "fast"
    place = id(holder.k)
    for number in range(2000):
        holder.k = number + 5.0
        if id(holder.k) == place:
            break
    assert checked(X) == "elsewhere"


@pytest.mark.usefixtures("always_shortcuts")
def test_assignments_of_another_thread_while_a_shortcut_is_made() -> None:
    model = Scaled()
    model.layers.extend(nn.Linear(4, 4) for _ in range(10))
    _, checked = check(Task(model, (X,)))
    for delay in (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016) * 2:
        model.scale, model.comment = 2.0, delay
        thread = Timer(delay, setattr, (model, "scale", 3.0))
        thread.start()
        checked(X)
        thread.join()
        assert checked(X) == "elsewhere"


@pytest.mark.usefixtures("always_shortcuts")
def test_a_shortcut_keeps_no_inputs() -> None:
    model = nn.Linear(4, 4)
    _, checked = check(Task(model, (X,)))
    model.comment = 1
    given = X.clone()
    reference = weakref.ref(given)
    assert checked(given) == "fast"
    del given
    assert reference() is None


@pytest.mark.usefixtures("always_shortcuts")
def test_many_threads() -> None:
    model, errors = Scaled(), []
    _, checked = check(Task(model, (X,)))
    until = perf_counter() + 3.0

    def call() -> None:
        with torch.no_grad():
            while perf_counter() < until:
                try:
                    assert checked(X) == "fast"
                except Exception as error:
                    errors.append(error)

    def assign() -> None:
        while perf_counter() < until:
            model.comment = perf_counter()

    threads = [Thread(target=target) for target in (call, call, call, assign)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
