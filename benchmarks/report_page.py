"""How large a report is, how long it takes to write, and how quickly a browser shows it.

Three captures: GPT-2 (12 layers, the default configuration of transformers, random weights, forward and backward), a graph of
5,100 nodes in one function, and a small network. For each: the size of the page, the seconds to write it, and in headless
Chromium, in a fresh context each time: until the first paint, until the page answers (data shown, an event handled), until what
belongs to a line is lit, and the longest pause between two frames while a drawn graph is dragged and zoomed.

    python benchmarks/report_page.py              # needs Chromium; a few minutes, most of it compiling GPT-2
    python benchmarks/report_page.py --only large
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rendering.compile_tables import page_table
from stored_results import Measurement, add_output_argument

PROGRAMS = {
    "gpt2": """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config())
tokens = torch.randint(0, 1000, (1, 32))
torch.compile(model)(input_ids=tokens, labels=tokens).loss.backward()
""",
    "large": """
import torch
def large(x):
    for _ in range(1700):
        x = torch.sin(x) * 1.01 + 0.5
    return x
torch.compile(large, backend="aot_eager")(torch.randn(10))
""",
    "mlp": """
import torch
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
torch.compile(model)(torch.randn(8, 16)).square().mean().backward()
""",
}
TITLES = {
    "gpt2": "GPT-2, 12 layers, forward and backward",
    "large": "one function of 5,100 nodes",
    "mlp": "MLP, forward and backward",
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FRAMES = """
() => new Promise(resolve => {
  let last = performance.now(), longest = 0, until = last + 1500;
  const step = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    now < until ? requestAnimationFrame(step) : resolve(longest);
  };
  requestAnimationFrame(step);
})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PROGRAMS, action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a folder for captures and pages; captures that are there are used")
    add_output_argument(parser, "report_page")
    options = parser.parse_args()
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)} is there")
    measurement, records = Measurement("report_page", packages=("transformers", "playwright")), []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in options.only or PROGRAMS:
            records.append(measure(name, folder, browser, options.rounds))
            print(page_table(records[-1:]).splitlines()[-1], flush=True)
    print("\n" + page_table(records))
    print(f"stored in {measurement.write(records, path=options.output)}")


def measure(name: str, folder: Path, browser: str, rounds: int) -> dict[str, object]:
    """Record a program, write its report, and show that in a browser several times."""
    import compile_inspect
    from compile_inspect import report

    capture = folder / f"{name}.inspection"
    if not capture.exists():
        script = folder / f"{name}.py"
        script.write_text(PROGRAMS[name])
        command = [sys.executable, "-m", "compile_inspect", "run", "-o", str(capture), "--fresh", str(script)]
        subprocess.run(command, check=True, cwd=folder, capture_output=True)
    inspection = compile_inspect.load(capture)
    start = time.perf_counter()
    page = report.html([(name, inspection)])
    written = time.perf_counter() - start
    path = folder / f"{name}.html"
    path.write_text(page, encoding="utf-8")
    nodes = max((len(graph.nodes) for graph in inspection.graphs), default=0)
    visits = zip(*(visit(path, browser) for _ in range(rounds)), strict=True)
    columns = ("first_paint_ms", "answers_ms", "line_lit_ms", "longest_pause_ms")
    return {
        "capture": TITLES[name],
        "nodes": nodes,
        "page_megabytes": len(page) / 1e6,
        "written_seconds": written,
        **{column: list(values) for column, values in zip(columns, visits, strict=True)},
    }


def visit(path: Path, browser: str) -> tuple[float, float, float, float]:
    """Milliseconds until the first paint, until the page answers, until a line is lit, and the longest pause."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        # An event is handled only when the script that shows the page has come to rest.
        answers = page.evaluate("() => new Promise(resolve => setTimeout(() => resolve(performance.now()), 0))")
        paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
        lit = light(page)
        pause = drag(page)
        chromium.close()
    return paint, answers, lit, pause


def light(page: object) -> float:
    """From a pointer on a linked line to the frame in which its counterparts are lit, the slowest of a hundred lines."""
    return page.evaluate(  # type: ignore[attr-defined]
        """async () => {
          const frame = () => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 0)));
          const lines = [...document.querySelectorAll("[data-pane=source] .linked[data-line]")].slice(0, 100);
          let most = 0;
          for (const line of lines) {
            await frame();
            const start = performance.now();
            line.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
            await frame();
            if (!line.classList.contains("lit")) throw new Error("nothing was lit");
            most = Math.max(most, performance.now() - start);
          }
          return most;
        }"""
    )


def drag(page: object) -> float:
    """The longest pause between two frames while the drawn graph is moved and zoomed for a second and a half."""
    pane = page.locator("[data-pane=graph]")  # type: ignore[attr-defined]
    pane.scroll_into_view_if_needed()
    page.locator("[data-view=drawn]").first.click()  # type: ignore[attr-defined]
    page.wait_for_selector("[data-box]", timeout=60_000)  # type: ignore[attr-defined]
    box = pane.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate(f"() => {{ window.__frames = ({FRAMES.strip()})(); }}")  # type: ignore[attr-defined]
    mouse = page.mouse  # type: ignore[attr-defined]
    mouse.move(x, y)
    mouse.down()
    for step in range(20):
        mouse.move(x + 5 * step, y + 3 * step)
    mouse.up()
    for step in range(10):
        mouse.wheel(0, -120 if step < 5 else 120)
    return page.evaluate("() => window.__frames")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
