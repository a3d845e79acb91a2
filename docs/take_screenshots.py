"""Take the screenshots of the report that README and docs show, from a real capture of a real model.

    make screenshots        # needs Chromium

Records a transformer block with a graph break, compares it with eager, times it and analyzes its break. Opens the report in a
browser and takes screenshots. Then runs the guided tour and takes a screenshot of its report. Takes a few minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IMAGES = HERE / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MODEL = '''"""A block of a transformer, with a leftover print."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.queries = nn.Linear(width, 3 * width)
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.queries(self.attention_norm(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5, dim=-1)
        return (weights @ value).transpose(1, 2).reshape(batch, length, width)

    def forward(self, x):
        x = x + self.attend(x)
        print("attended", x.shape)
        hidden = torch.nn.functional.gelu(self.up(self.norm(x)))
        return x + self.down(hidden) * torch.sigmoid(x)


torch.manual_seed(0)
model = Block()
inputs = (torch.randn(4, 16, 64, requires_grad=True),)
'''


def main() -> None:
    """Record, report, and take screenshots."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"no browser was found: install one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as folder:
        take(make_page(Path(folder)), browser)
        take_tour(make_tour(Path(folder)), browser)


def make_page(folder: Path) -> Path:
    """The report of the model."""
    (folder / "block.py").write_text(MODEL)
    target = ("block.py:model", "--inputs", "block.py:inputs")
    for command in (
        ("inspect", *target, "-o", "block.inspection", "--fresh"),
        ("verify", *target, "--variants", "inductor,aot_eager", "--capture", "block.inspection"),
        ("bench", *target, "--variants", "eager,inductor", "--sweep", "batch=1,4,16,64", "--capture", "block.inspection"),
        ("breaks", *target, "--capture", "block.inspection"),
        ("report", "block.inspection", "--title", "A transformer block"),
    ):
        print("compile-inspect", *command, flush=True)
        subprocess.run(
            [sys.executable, "-m", "compile_inspect", *command],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # less noise on a machine with other load
        )
    return folder / "block.html"


def make_tour(folder: Path) -> Path:
    """The report of the guided tour."""
    print("compile-inspect tour", flush=True)
    command = [sys.executable, "-m", "compile_inspect", "tour", "-o", "tour"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "tour" / "report.html"


def take_tour(page: Path, browser: str) -> None:
    """A screenshot of the list of lessons, and of the first one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        view = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        view.goto(page.as_uri())
        view.wait_for_selector("html[data-ready]")
        view.screenshot(path=IMAGES / "report-tour.png")
        chromium.close()


def take(page: Path, browser: str) -> None:
    """Screenshots of the verdict, of the explorer with a selected line, and of the drawn graph."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            view = chromium.new_page(
                viewport={"width": 1280, "height": 900},
                device_scale_factor=1,
                color_scheme="dark" if theme == "dark" else "light",
            )
            view.goto(page.as_uri())
            view.wait_for_selector("html[data-ready]")
            # The header sticks to the top of the window, and would be in the middle of a long screenshot.
            view.evaluate("() => { document.querySelector('.masthead').style.position = 'static'; }")
            if theme == "light":
                view.screenshot(path=IMAGES / "report-verdict.png")
                view.locator("#breaks").screenshot(path=IMAGES / "report-breaks.png")
                view.locator("#speed").screenshot(path=IMAGES / "report-speed.png")
            # High enough for the panes and for the details of the line below them.
            view.set_viewport_size({"width": 1280, "height": 1100})
            view.locator("#explorer").scroll_into_view_if_needed()
            line = next(number for number, text in enumerate(MODEL.split("\n"), 1) if "weights = torch.softmax" in text)
            view.locator(f"[data-pane=source] [data-line$=':{line}'] .line-number").click()
            view.evaluate("() => document.querySelector('[data-pane=source] .chosen').scrollIntoView({ block: 'center' })")
            name = "report-explorer.png" if theme == "light" else "report-explorer-dark.png"
            view.locator("#explorer").screenshot(path=IMAGES / name)
        chromium.close()


if __name__ == "__main__":
    main()
