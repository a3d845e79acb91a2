"""Python imports a module of this name at start-up; `compile-inspect run` puts this one first on PYTHONPATH.

It starts the recorder, steps out of the way, and lets the machine's own `sitecustomize` run as usual.
"""

import importlib.machinery
import importlib.util
import pathlib
import sys

_here = str(pathlib.Path(__file__).parent)
sys.path[:] = [entry for entry in sys.path if entry != _here]

try:
    try:
        from compile_inspect.capture.autostart import start_from_environment
    except ModuleNotFoundError:
        # Run from a checkout that is not installed, by an interpreter that was given its path.
        sys.path.append(str(pathlib.Path(__file__).parents[3]))
        from compile_inspect.capture.autostart import start_from_environment
    start_from_environment()
except Exception:  # the program comes first: a recorder that cannot start stays out of it
    pass

# The machine's own `sitecustomize`, which this one stands in front of, takes its place; its errors are its own.
_own = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if _own is not None and _own.loader is not None:
    sys.modules["sitecustomize"] = importlib.util.module_from_spec(_own)
    _own.loader.exec_module(sys.modules["sitecustomize"])
