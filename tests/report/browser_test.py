#!/usr/bin/env python3
"""Opens a report from disk in a headless Chromium: no complaints on its console, nothing fetched, and the viewer's controls change the picture.

    tests/report/browser_test.py [REPORT.html]      without one, a small ablation is run for it
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import browser

ROOT = pathlib.Path(__file__).resolve().parents[2]


def small_ablation(folder):
    """The report of an ablation of a few steps, with probes and maps."""
    subprocess.run([ROOT / "heed", "run", ROOT / "configs/ablations/attention.yaml", "--output", folder, "--quiet", "seeds=2",
                    "vary={model.attention: [scaled, additive]}", "train.steps=20", "data.ngram_sentences=1000", "train.evaluate.every=10",
                    "probes={every: 5, attention: [entropy], maps: {examples: 2, every: 10}}"], check=True, stdout=subprocess.DEVNULL)
    return folder + "/attention/report.html"


def long_names(folder):
    """The report of an ablation whose arms have names of 40 characters that differ at their ends."""
    arms = {f"cosine-entmax15 of a long description {c}": {"model.attention": {"score": "cosine", "align": align}}
            for c, align in zip("abcd", ("softmax", "sparsemax", "entmax15", "sigmoid"))}
    config = pathlib.Path(folder, "long.yaml")
    config.write_text(json.dumps({
        "ablation": "long", "base": str(ROOT / "configs/ablations/grammar.yaml"), "seeds": 2, "add": arms,
        "vary": {"model.attention": ["scaled", "additive"]},
        "set": {"train.steps": 20, "data.ngram_sentences": 1000, "train.evaluate.every": 5,
                "probes": {"every": 5, "attention": ["entropy"], "maps": {"examples": 2, "every": 20}}}}))
    subprocess.run([ROOT / "heed", "run", config, "--output", folder, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return folder + "/long/report.html"


def check(what, holds):
    print("ok  " if holds else "FAIL", what)
    if not holds:
        check.failed = True


check.failed = False
PICTURE = "[...document.querySelectorAll('.map svg .cells')].map(cells => cells.getAttribute('fill') + cells.getAttribute('d')).join()"
TEXTS = "[...document.querySelectorAll('.map svg text')]"
SETTLED = "new Promise(done => setTimeout(done, 150))"


def choose(page, name, value):
    """What the viewer shows after a control was set as a person would."""
    page.run(f"(() => {{ const c = document.querySelector('[data-choose={name}]'); c.type === 'checkbox' ? c.checked = {value} : c.value = '{value}';"
             " c.dispatchEvent(new Event('input', {bubbles: true})); })()")
    page.run(SETTLED)
    return page.run(PICTURE)


def test_page(report, width, dark):
    look = f"{'dark' if dark else 'light'}, {width} wide"
    with browser.Browser(width=width, dark=dark) as page:
        page.open(report)
        check(f"{look}: the page is not wider than the window", page.run("document.documentElement.scrollWidth") <= width)
        page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        wide = page.run("[...document.querySelectorAll('.scroll')].filter(e => e.querySelector('table') && e.scrollWidth > e.clientWidth + 1)"
                        ".map(e => e.getAttribute('aria-label'))")
        check(f"{look}: no table scrolls or is cut {wide or ''}", not wide)
        check(f"{look}: figures have names", page.run("[...document.querySelectorAll('figure svg')].every(s => s.getAttribute('role') === 'img' &&"
                                                      " s.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id).textContent))"))
        check(f"{look}: controls have labels", page.run("[...document.querySelectorAll('select, input')].every(c => c.labels.length === 1)"))
        # Ink and paper differ as much as WCAG asks of small print.
        contrast = page.run("""(() => {
          const light = rgb => rgb.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                                 .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const paper = light(getComputedStyle(document.body).backgroundColor);
          return Math.min(...[...document.querySelectorAll('p, td, th, figcaption, figure text, .map text')].map(e => {
            const style = getComputedStyle(e), ink = light(e instanceof SVGElement ? style.fill : style.color);
            return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); }));
        })()""")
        check(f"{look}: text stands out from its ground ({contrast:.1f} : 1)", contrast >= 3)
        check(f"{look}: no complaints on the console {page.problems or ''}", not page.problems)
        check(f"{look}: nothing is fetched but the file", all(url.startswith(("file:", "data:")) for url in page.fetched) and
              sum(url.startswith("file:") for url in page.fetched) == 1)


# Texts that leave their picture, pictures and cells of tables that leave the page; what is folded away has no size.
OUTSIDE = """(() => {
  const found = [], within = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const page = {left: 0, right: document.documentElement.clientWidth, top: -Infinity, bottom: Infinity};
  for (const svg of document.querySelectorAll('figure svg, .map svg')) {
    const picture = svg.getBoundingClientRect();
    if (picture.width === 0) continue;
    if (!within(picture, page)) found.push('picture: ' + (svg.querySelector('title')?.textContent ?? 'map'));
    for (const text of svg.querySelectorAll('text'))
      if (text.textContent.trim() && !within(text.getBoundingClientRect(), picture)) found.push(text.textContent);
  }
  for (const cell of document.querySelectorAll('th, td')) {
    const range = document.createRange();
    range.selectNodeContents(cell);
    for (const line of range.getClientRects()) if (line.width > 1 && !within(line, page)) found.push('cell: ' + cell.textContent);
  }
  return found;
})()"""


# By picture that is seen, the names that begin so, with the lines into which they are wrapped.
NAMES = """[...document.querySelectorAll('figure svg')].filter(svg => svg.getBoundingClientRect().width > 0).map(svg => {
  const names = [];
  let last = null;
  for (const text of svg.querySelectorAll('text')) {
    const words = text.textContent.trim(), box = text.getBoundingClientRect();
    if (words.startsWith('cosine')) names.push(words), last = box;
    else if (last && Math.abs(box.left - last.left) < 1 && box.top > last.top && box.top < last.bottom + last.height)
      names[names.length - 1] += ' ' + words, last = box;
    else last = null;
  }
  return names;
})"""


def test_room(report, what):
    for width in (400, 800, 1200):
        with browser.Browser(width=width) as page:
            page.open(report)
            page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            outside = page.run(OUTSIDE)
            check(f"{what}, {width} wide: every text lies within its picture, every picture and cell within the page {outside or ''}", not outside)
            same = [names for names in page.run(NAMES) if len(set(names)) < len(names)]
            check(f"{what}, {width} wide: names that differ look different {same or ''}", not same)


def test_print(report):
    with browser.Browser(width=703, dark=True) as page:  # A4 between its margins
        page.open(report)
        page.call("Emulation.setEmulatedMedia", media="print")
        cut = page.run("[...document.querySelectorAll('.scroll, pre')].filter(e => e.scrollWidth > e.parentElement.clientWidth + 1)"
                       ".map(e => e.getAttribute('aria-label') || e.tagName)")
        check(f"print: no column is cut {cut or ''}", not cut)
        check("print: what is folded shows", page.run("[...document.querySelectorAll('details:not([open])')].every(d =>"
                                                      " d.lastElementChild.getBoundingClientRect().height > 0)"))
        check("print: each figure stands with its heading", page.run("[...document.querySelectorAll('figure')].every(f => f.firstElementChild.tagName === 'H3'"
                                                                     " || f.parentElement.tagName === 'DETAILS')"))
        check("print: black on white", page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)")
        pages = len(re.findall(rb"/Type\s*/Page\b", page.pdf()))
        check(f"print: {pages} pages, at most 6", pages <= 6)


def test_viewer(report):
    with browser.Browser() as page:
        page.open(report)
        first = page.run(PICTURE)
        check("the viewer shows a map", len(set(first.split(","))) > 10)
        check("labels are large enough to be read", page.run(f"Math.min(...{TEXTS}.map(text => parseFloat(text.getAttribute('font-size'))))") >= 11)
        names = f"{TEXTS}.map(text => text.textContent).join('\\n')"
        check("the heads of a layer stand beside each other", all(f"head {i}" in page.run(names) for i in (0, 1)))
        check("the axes say what they are", "rows: queries, " in page.run(names) and "columns: keys, " in page.run(names))
        check("the scale is named", "weight: " in page.run(names))
        for name, value in (("arm", 1), ("layer", 1), ("head", 1), ("example", 1), ("step", 0)):
            before = page.run(PICTURE)
            check(f"another {name} is another picture", choose(page, name, value) != before)
        before = page.run(PICTURE)
        check("the colours' scale changes", choose(page, "scale", 0) != before)
        check("arms stand below each other", choose(page, "arm", 2).count("H0z") > before.count("H0z"))
        choose(page, "arm", 0)
        page.run("window.saved = []; HTMLAnchorElement.prototype.click = function() { saved.push(this.download, this.href); }")
        for kind in ("png", "svg"):
            page.run(f"document.querySelector('[data-save={kind}]').click()")
            page.run(SETTLED)
        saved = page.run("saved")
        check("what is seen is saved as PNG", saved[0].endswith(".png") and saved[1].startswith("data:image/png;base64,iVBOR") and len(saved[1]) > 10000)
        check("and as SVG", saved[2].endswith(".svg") and "%3Csvg" in saved[3])
        page.run("document.querySelector('.map').focus()")
        readout = "document.querySelector('.readout').textContent"
        page.key("ArrowDown")
        page.key("ArrowDown")
        page.run(SETTLED)
        second = page.run(readout)
        check(f"arrow keys read cells: {second}", "attends to" in second and "weight" in second)
        page.key("ArrowRight")
        page.run(SETTLED)
        check("the next cell is another", page.run(readout) != second)
        x, y = page.run("(() => { const svg = document.querySelector('.map svg'); svg.scrollIntoView({block: 'center'});"
                        " const r = svg.querySelector('.cells').getBoundingClientRect(); return [r.x + 2, r.y + 2]; })()")
        page.move(x, y)
        page.run(SETTLED)
        check("pointing reads the first cell", "(position 0) attends to" in page.run(readout))
        light = page.run(PICTURE)
        page.dark(True)
        page.run(SETTLED)
        check("the dark page's map is another", page.run(PICTURE) != light)
        check(f"no complaints on the console {page.problems or ''}", not page.problems)


def main():
    if not browser.find():
        print("skipped: there is no Chromium (apt-get install chromium)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else small_ablation(folder)
        test_room(report, "a report")
        if len(sys.argv) == 1:
            test_room(long_names(folder), "names of 40 characters")
        for width, dark in ((1000, False), (1000, True), (390, False)):
            test_page(report, width, dark)
        test_print(report)
        test_viewer(report)
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
