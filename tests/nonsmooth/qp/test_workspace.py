"""Steps of the native library, against those of the model in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsmooth.evaluate import Trial
from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory, curvature_pair
from nonsmooth.kinks.bundle import Bundle, own_cut
from nonsmooth.kinks.pieces import ConstraintPieces
from nonsmooth.native import load
from nonsmooth.qp import QPSolver
from nonsmooth.qp.native import MAX_NATIVE_ENTRIES
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.step.model import Model, Step

pytestmark = pytest.mark.skipif(load() is None, reason="the native library is missing or switched off")


def trial(generator: np.random.Generator, x: np.ndarray, equalities: int, inequalities: int) -> Trial:
    count = equalities + inequalities
    values, gradient, rows = generator.standard_normal(count), generator.standard_normal(len(x)), (count, len(x))
    return Trial.stored(x, float(generator.standard_normal()), values, equalities, gradient, generator.standard_normal(rows))


def both(
    seed: int, *, size: int, cuts: int, equalities: int, inequalities: int, extra: int, spread: float = 0.3
) -> tuple[Model, Model]:
    """The same model twice: once with compiled steps, once without."""
    generator = np.random.default_rng(seed)
    at = trial(generator, np.zeros(size), equalities, inequalities)
    bundle, kinks = Bundle(size, 1000), ConstraintPieces(size, 1000)
    for _ in range(cuts - 1):
        bundle.add(trial(generator, spread * generator.standard_normal(size), equalities, inequalities))
    bundle.weights = generator.dirichlet(np.ones(cuts))[1:]
    for _ in range(extra if equalities + inequalities else 0):
        there = trial(generator, spread * generator.standard_normal(size), equalities, inequalities)
        kinks.add(there, int(generator.integers(equalities + inequalities)))
    root = generator.standard_normal((size, size))
    found = []
    for native in (True, False):
        rows = kinks.at(at) if len(kinks) else None
        model = Model(at, bundle.cuts(at), rows, FullMemory(size, root @ root.T + 0.1 * np.eye(size)), QPSolver())
        assert model._native is not None
        if not native:
            model._native = None
        found.append(model)
    return found[0], found[1]


def assert_same(one: Step, other: Step) -> None:
    assert one.trusted and other.trusted
    for name in ("direction", "gradient", "objective_gradient"):
        here, there = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(here, there, rtol=0, atol=1e-5 * (1 + np.abs(there).max()), err_msg=name)
    for name in ("objective_change", "predicted_violation", "decrease", "error", "weight"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-5, abs=1e-5), name
    assert len(one.multipliers) == len(other.multipliers) and len(one.row_multipliers) == len(other.row_multipliers)
    assert one.weights.sum() == pytest.approx(1.0, abs=1e-12) and (one.weights >= 0).all()


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6), size=st.integers(2, 12), cuts=st.integers(1, 30), equalities=st.integers(0, 3),
    inequalities=st.integers(0, 6), extra=st.integers(0, 5), weight=st.sampled_from([0.1, 1.0, 20.0]),
)  # fmt: skip
def test_as_in_python(seed: int, size: int, cuts: int, equalities: int, inequalities: int, extra: int, weight: float) -> None:
    shape = {"size": size, "cuts": cuts, "equalities": equalities, "inequalities": inequalities, "extra": extra}
    native, plain = both(seed, **shape)
    for step in (
        lambda model: model.step(weight),
        lambda model: model.step(3.0 * weight),  # from the answer before
    ):
        assert_same(step(native), step(plain))


def test_cuts_that_cannot_matter_are_left_out() -> None:
    """With far cuts the program is over a part of the matrix, which the answer does not show."""
    native, plain = both(5, size=6, cuts=40, equalities=1, inequalities=2, extra=0, spread=30.0)
    kept, _ = plain._session(0.1, plain._values)
    assert 3 < len(kept) < 43
    assert_same(native.step(0.1), plain.step(0.1))


@pytest.mark.parametrize("shape", [(1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 0, 2), (2, 0, 0), (1, 5, 0)])
def test_the_smallest_programs(shape: tuple[int, int, int]) -> None:
    cuts, equalities, inequalities = shape
    native, plain = both(3, size=4, cuts=cuts, equalities=equalities, inequalities=inequalities, extra=0)
    for weight in (0.01, 1.0, 1e3):
        assert_same(native.step(weight), plain.step(weight))


def test_a_step_stays_what_it_is_when_another_is_found() -> None:
    native, _ = both(1, size=5, cuts=4, equalities=1, inequalities=2, extra=2)
    first = native.step(1.0)
    names = ("direction", "gradient", "multipliers", "weights", "row_multipliers")
    copies = {name: getattr(first, name).copy() for name in names}
    native.step(50.0)
    for name, value in copies.items():
        np.testing.assert_array_equal(getattr(first, name), value)


def test_a_program_that_is_not_finite_is_left_to_the_others() -> None:
    native, _ = both(2, size=4, cuts=3, equalities=0, inequalities=2, extra=0)
    assert native._native is not None
    start = np.full(5, np.nan)
    assert native._native.step(1.0, start, np.inf) is None
    assert native.step(1.0).trusted


def test_one_memory_for_models_of_all_sizes() -> None:
    solver = QPSolver()
    generator = np.random.default_rng(0)
    for size, constraints in ((3, 2), (20, 80), (2, 1), (40, 200), (5, 7)):
        at = trial(generator, np.zeros(size), constraints // 3, constraints - constraints // 3)
        cuts = Bundle(size, 5)
        cuts.add(trial(generator, np.ones(size), constraints // 3, constraints - constraints // 3))
        step = Model(at, cuts.cuts(at), None, FullMemory(size), solver).step(2.0)
        solver._name, kernel = "auto", solver.kernel
        solver.kernel = None
        expected = Model(at, cuts.cuts(at), None, FullMemory(size), solver).step(2.0)
        solver.kernel = kernel
        np.testing.assert_allclose(step.direction, expected.direction, atol=1e-5)
    assert solver.counts.failed == 0 and solver.counts.solved == 10


def test_the_program_counts_as_one_and_has_its_time() -> None:
    clock = Clock()
    solver = QPSolver(clock=clock)
    generator = np.random.default_rng(0)
    at = trial(generator, np.zeros(30), 0, 50)
    with clock.phase(Phase.DIRECTIONS):
        Model(at, Bundle(30, 5).cuts(at), None, FullMemory(30), solver).step(2.0)
    times = clock.times()
    assert times.counts[Phase.QP] == 1 and solver.counts.solved == 1
    assert 0 < times["QP"] < times.total and times["directions"] > 0


def test_what_fits() -> None:
    generator = np.random.default_rng(0)

    def laid(constraints: int, solver: QPSolver, hessian: InverseHessian) -> bool:
        at = trial(generator, np.zeros(300), 0, constraints)
        return Model(at, own_cut(at), None, hessian, solver)._native is not None

    assert laid(MAX_NATIVE_ENTRIES - 1, QPSolver(), FullMemory(300)) and not laid(
        MAX_NATIVE_ENTRIES, QPSolver(), FullMemory(300)
    )
    without = QPSolver()
    without.kernel = None
    assert not laid(3, without, FullMemory(300))
    limited = LimitedMemory(300, pairs=2)
    assert laid(3, QPSolver(), limited)
    limited.update(curvature_pair(np.ones(300), np.ones(300), None, 0.0))
    assert not laid(3, QPSolver(), limited)


def thinned(generator: np.random.Generator, at: Trial) -> Trial:
    """The same with constraints of single variables, as bounds are."""
    rows = np.zeros_like(at.jacobian)
    rows[np.arange(len(rows)), generator.integers(rows.shape[1], size=len(rows))] = generator.choice([-1.0, 1.0], len(rows))
    return Trial.stored(at.x, at.f, at.c, at.equalities, at.gradient, rows)


@pytest.mark.parametrize(("size", "updates"), [(4, 3), (30, 20), (120, 10), (210, 0), (210, 8), (210, 60)])
@pytest.mark.parametrize("thin", [False, True], ids=["", "thin"])
def test_one_model_after_the_other(size: int, updates: int, thin: bool) -> None:
    """Rows come and go, points and matrices change: what is kept from one model to the next is never seen in a step."""
    generator, solver = np.random.default_rng(size + updates), QPSolver()
    bundle, kinks, hessian = Bundle(size, 12), ConstraintPieces(size, 6), FullMemory(size)

    def point(spread: float) -> Trial:
        found = trial(generator, spread * generator.standard_normal(size), 2, 3)
        return thinned(generator, found) if thin else found

    def learn() -> None:
        s = generator.standard_normal(size)
        hessian.update(curvature_pair(s, (0.5 + generator.random(size)) * s, None, 0.0))

    for _ in range(updates):
        learn()
    at, alone, compared = point(0.1), False, 0
    for _ in range(120):
        what = generator.integers(10)
        if what == 0:
            at = point(0.1)
            learn()
        elif what == 1:
            at = point(0.1)
        elif what == 2:
            learn()
        elif what == 3:
            alone = not alone
        elif what <= 7:
            bundle.add(point(0.3))
        else:
            kinks.add(point(0.3), int(generator.integers(5)))
        cuts = own_cut(at) if alone else bundle.cuts(at)
        extra = kinks.at(at) if len(kinks) else None
        model = Model(at, cuts, extra, hessian, solver)
        plain = Model(at, cuts, extra, hessian, QPSolver())
        assert model._native is not None
        plain._native = None
        weight = float(generator.choice([0.3, 3.0]))
        step = model.step(weight)
        assert_same(step, plain.step(weight))
        assert model.reference(weight) == pytest.approx(plain.reference(weight), rel=1e-5, abs=1e-5)
        assert_same(model.step(weight), plain.step(weight))
        if not alone:
            bundle.weights = step.weights[1:]
        compared += 1
    assert compared == 120 and solver.counts.failed == 0


def test_an_older_model_can_be_asked_again() -> None:
    generator, solver = np.random.default_rng(1), QPSolver()
    first, second = (trial(generator, generator.standard_normal(5), 1, 2) for _ in range(2))
    bundle, hessian = Bundle(5, 5), FullMemory(5)
    bundle.add(trial(generator, generator.standard_normal(5), 1, 2))
    older = Model(first, bundle.cuts(first), None, hessian, solver)
    before = older.step(2.0)
    bundle.add(second)
    Model(second, bundle.cuts(second), None, FullMemory(5, 3.0 * np.eye(5)), solver).step(2.0)
    again = older.step(2.0)
    np.testing.assert_allclose(again.direction, before.direction, atol=1e-9)
    assert older.reference(2.0) == pytest.approx(Model(first, bundle.cuts(first), None, hessian, QPSolver()).reference(2.0))


def test_the_memory_goes_with_the_workspace() -> None:
    import gc
    import resource

    def one() -> None:
        solver = QPSolver()
        at = trial(np.random.default_rng(0), np.zeros(100), 0, 300)
        Model(at, own_cut(at), None, FullMemory(100), solver).step(1.0)

    for _ in range(5):
        one()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(60):  # 8 MB each
        one()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_the_same_gradient_twice() -> None:
    """A key that two rows have is no way to tell them apart: all is done anew."""
    generator, solver, hessian = np.random.default_rng(3), QPSolver(), FullMemory(4)
    at = trial(generator, np.zeros(4), 0, 2)
    bundle = Bundle(4, 10)
    for _ in range(4):
        bundle.add(trial(generator, 0.2 * generator.standard_normal(4), 0, 2))
    cuts = bundle.cuts(at)
    assert cuts.table is not None
    cuts.table.keys[2] = cuts.table.keys[1]
    expected = Model(at, cuts, None, hessian, QPSolver())
    expected._native = None
    for _ in range(3):
        model = Model(at, cuts, None, hessian, solver)
        assert model._native is not None
        assert_same(model.step(1.5), expected.step(1.5))


def test_numbers_of_single_precision_are_converted() -> None:
    generator = np.random.default_rng(4)
    at = trial(generator, np.zeros(5), 1, 2)
    short = Trial.stored(
        *(part.astype(np.float32) if isinstance(part, np.ndarray) else part for part in (at.x, at.f, at.c)),
        at.equalities, at.gradient.astype(np.float32), at.jacobian.astype(np.float32),
    )  # fmt: skip
    steps = [
        Model(point, own_cut(point), None, FullMemory(5), QPSolver(), multipliers=np.zeros(3, dtype=np.float32)).step(2.0)
        for point in (at, short)
    ]
    np.testing.assert_allclose(steps[1].direction, steps[0].direction, rtol=1e-5, atol=1e-5)
