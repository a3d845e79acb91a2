"""A capture as one HTML file with source, graphs and kernels side by side, linked."""

from compile_inspect.reporters.html.capture import CaptureReport as CaptureReport
from compile_inspect.reporters.html.capture import Limits as Limits
from compile_inspect.reporters.html.lessons import Tour as Tour
from compile_inspect.reporters.html.page import render as render
