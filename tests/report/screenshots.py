#!/usr/bin/env python3
"""README's pictures of a report, made by a headless Chromium: report-light.png, report-dark.png and report-narrow.png beside this file.

    tests/report/screenshots.py [REPORT.html [GRID.html]]   default: runs/attention/report.html, which README's command leaves, and
                                                            runs/recall_grid/report.html, for report-grid.png, if it is there
"""

import pathlib
import sys

import browser

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main():
    if not browser.find():
        print("skipped: there is no Chromium (apt-get install chromium)")
        return 0
    report = sys.argv[1] if len(sys.argv) > 1 else ROOT / "runs/attention/report.html"
    with browser.Browser(width=860, height=1180) as page:  # verdicts, table and forest plot
        page.open(report)
        page.screenshot(HERE / "report-light.png")
    with browser.Browser(width=860, dark=True) as page:  # the viewer, with a cell pointed at
        page.open(report)
        page.run("document.querySelector('.map').focus()")
        for key in ["ArrowDown"] * 8 + ["ArrowRight"] * 4:
            page.key(key)
        page.run("document.activeElement.blur()")
        page.run("new Promise(done => setTimeout(done, 200))")
        page.screenshot(HERE / "report-dark.png", ".viewer")
    with browser.Browser(width=390, height=844) as page:
        page.open(report)
        page.run("document.querySelector('h2').scrollIntoView()")
        page.screenshot(HERE / "report-narrow.png")
    names = ["light", "dark", "narrow"]
    grid = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "runs/recall_grid/report.html"
    if grid.exists():
        names.append("grid")
        with browser.Browser(width=860, height=1080) as page:
            page.open(grid)
            page.screenshot(HERE / "report-grid.png")
    for name in names:
        print(f"{HERE / f'report-{name}.png'}: {(HERE / f'report-{name}.png').stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
