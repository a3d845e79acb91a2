"""Open a page in Chromium; whatever it complains about, or asks another machine for, is a failure.

    python tests/newcomer/open_report.py REPORT.html

Exits with 0 if it opened well, 1 if not, and 3 if there is no browser here.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from browser_pages import BROWSERS, Opened

NO_BROWSER = 3


def open_page(path: Path) -> Opened | None:
    """The page after it has shown itself; None where there is no browser."""
    found = next((place for name in BROWSERS if (place := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        return None
    with sync_playwright() as driver:
        # Containers run as root, where Chromium's own sandbox does not start.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        opened = Opened(browser.new_page(), path)
        opened.page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(path.as_uri())
        try:
            opened.page.wait_for_selector("html[data-ready]", timeout=30_000)
        except Exception as error:  # Playwright's own class for it is known only where it is installed
            opened.complaints.append(f"the page did not get ready: {error}")
        if not opened.page.locator("body").inner_text().strip():
            opened.complaints.append("the page is empty")
        browser.close()
    opened.complaints += [f"it asked for {address}" for address in opened.requests if address != path.as_uri()]
    return opened


def main(path: Path) -> int:
    """Open, tell, and give the exit status."""
    opened = open_page(path.resolve())
    if opened is None:
        print(f"  no browser here: none of {', '.join(BROWSERS)}, or no playwright")
        return NO_BROWSER
    for complaint in opened.complaints:
        print(f"  FAILED {path.name}: {complaint}")
    return 1 if opened.complaints else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
