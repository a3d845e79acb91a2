"""`minimize` as it works where kinks cannot be seen: for tests of what a run does on a longer way.

Tests import it with `from black_box import minimize`: pytest puts the tests folder on the path.
"""

from __future__ import annotations

from functools import partial

import nonsmooth

minimize = partial(nonsmooth.minimize, structure="off")
