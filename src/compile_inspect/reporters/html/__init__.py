"""A capture as one HTML file that shows source, graphs and kernels side by side, linked."""

from compile_inspect.reporters.html.capture import Limits as Limits
from compile_inspect.reporters.html.capture import Shown as Shown
from compile_inspect.reporters.html.lessons import Tour as Tour
from compile_inspect.reporters.html.page import render as render
