"""What `compile_inspect.predict_recompiles` returns."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records.forecast import Forecast, ForecastComparison, Treatment
from compile_inspect.rendering import Format, render


@dataclass(frozen=True)
class RecompileForecast(Forecast):
    """A forecast with the causes of its recompiles and, if requested, a comparison with a real run."""

    causes: tuple[Treatment, ...] = ()
    """The causes of the recompiles, each with the remedies that were tried."""
    comparison: ForecastComparison | None = None
    """The forecast beside what torch.compile did with a backend; None if that was not requested."""

    def __str__(self) -> str:
        """The text that `compile-inspect guards --what-if` prints."""
        return render(Format.FORECAST, self)
