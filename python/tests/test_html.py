"""Arrays as HTML: well formed, escaped, counted, and compact, also as a browser draws them."""

import json
import re
import shutil
import struct
import subprocess
import zlib
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from moving_cases import columns, on, ours
from test_looks import nested

from bowstring._html import LIMITS, STYLE

EVERY_TYPE = dict(columns())
VOID = {"meta", "br", "img", "hr", "input", "link"}
EVIL = [
    "<script>window.hit=1</script>", '"><img src=x onerror="window.hit=1">', "</summary></details></div>", "&amp;&lt;",
    "'\"`", "\u202eback", "</style><script>window.hit=1</script>", "a\nb",
]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
NO_CHROMIUM = "skipped: no chromium"


class Tree(HTMLParser):
    """Every element, with its text; fails where one is not closed as it was opened."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.depth = [], [], 0
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", "attributes": dict(attributes)}
        self.found.append(element)
        if tag not in VOID:
            self.open.append(element)
            self.depth = max(self.depth, len(self.open))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1]["tag"] == tag, f"expected the end of {self.open[-1:]}, found that of {tag}"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag):
        return [element for element in self.found if element["tag"] == tag]


def test_every_node_and_buffer_is_there():
    for name, column in EVERY_TYPE.items():
        array = ours(column)
        tree = Tree(array._repr_html_())
        nodes, buffers = array._counts()
        assert len(tree.all("details")) == len(tree.all("summary")) == nodes, name
        assert len(tree.all("tr")) == buffers, name
        cells = [element["text"] for element in tree.all("td")]
        assert len(cells) == 3 * buffers
        for index in range(buffers):
            view = array.buffer_view(index)
            at = cells[index * 3 : index * 3 + 2]
            assert at == [view.role, f"0x{view.ptr:x}" if view.ptr else "none"], name
        assert [element["tag"] for element in tree.found][:3] == ["div", "style", "details"]
        opened = [element for element in tree.all("details") if "open" in element["attributes"]]
        assert opened == tree.all("details")[:1]


def test_it_is_one_element_that_asks_for_nothing():
    text = ours(pa.record_batch([[1]], names=["a"]))._repr_html_()
    tree = Tree(text)
    assert text.startswith("<div") and text.endswith("</div>") and text.count("<div") == 1
    assert not {element["tag"] for element in tree.found} & {"script", "link", "img", "iframe", "object", "svg"}
    assert all(set(element["attributes"]) <= {"class", "title", "open", "colspan"} for element in tree.found)
    assert "url(" not in text and "@import" not in text and "http" not in text
    # Every rule is about what is inside, so that a page stays as it is.
    for selector in re.findall(r"([^{}]+)\{", STYLE.replace("@media(prefers-color-scheme:dark){", "")):
        assert all(part.strip().startswith(".bowstring") for part in selector.split(",")), selector
    assert "prefers-color-scheme:dark" in STYLE and STYLE.count("{") == STYLE.count("}")


def test_everything_is_escaped():
    array = ours(pa.record_batch([pa.array([1])] * len(EVIL), names=EVIL))
    array._came_by = EVIL[1]
    text = array._repr_html_()
    tree = Tree(text)
    assert len(tree.all("details")) == 1 + len(EVIL) and not tree.all("script") and not tree.all("img")
    names = [element["text"] for element in tree.all("b")]
    for name, told in zip(EVIL, names):
        assert told == repr(name)
    assert "onerror=\"" not in text and "\u202e" not in text
    zone = ours(pa.array([1], pa.timestamp("s", "<b>&\"")))
    assert 'timestamp(s, "<b>&\\"")' in Tree(zone._repr_html_()).all("code")[0]["text"]
    extension = pa.field("x", pa.int8(), metadata={"ARROW:extension:name": "<i>evil</i>"})
    batch = pa.record_batch([pa.array([1], pa.int8())], schema=pa.schema([extension]))
    assert "'<i>evil</i>': int8" in Tree(ours(batch)._repr_html_()).all("code")[1]["text"]


def test_large_trees_stay_small():
    for array, size in (
        (ours(pa.record_batch({f"column_{i}": [i] for i in range(5000)})), 12_000),
        (ours(nested(60)), 12_000),
        (ours(pa.record_batch([nested(20)] * 50, [f"c{i}" for i in range(50)])), 45_000),
        (ours(pa.record_batch({"x" * 10_000: ["y"]})), 3000),
        (ours(pa.array([f"{i:06}" * (i % 40) for i in range(20_000)], pa.string_view())), 4000),
    ):
        text = array._repr_html_()
        tree = Tree(text)
        assert len(text) < size and len(tree.all("details")) <= LIMITS.nodes and tree.depth < 2 * LIMITS.depth + 8
        shown = sum(int(n.replace(",", "")) for n in re.findall(r"and ([\d,]+) more nodes?", text))
        assert len(tree.all("details")) + shown == array._counts()[0]


def test_the_device_is_told():
    array = on("cuda:1", ours(pa.array(["x"], pa.string_view())))
    text = array._repr_html_()
    assert ", on cuda:1" in Tree(text).all("summary")[0]["text"] and text.count("on cuda:1") == 1
    assert "after event" not in text


def chromium(folder, page, *options, dark=False, height=600):
    """What headless Chromium says of a page."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        "--force-device-scale-factor=1", f"--user-data-dir={folder / 'profile'}",
        f"--window-size=800,{height}", *options,
    ]
    if dark:
        command.append("--blink-settings=preferredColorScheme=0")
    run = subprocess.run([*command, file.as_uri()], capture_output=True, timeout=180)
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode()


def pixels(file):
    """Width, and rows of pixels, of a picture of 8 bits a colour as Chromium writes it."""
    data = file.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, channels = 8, b"", 3
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6)
            channels = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += size + 12
    raw, rows, last = zlib.decompress(packed), [], bytes(width * channels)
    for row in range(height):
        start = row * (width * channels + 1)
        how, line = raw[start], bytearray(raw[start + 1 : start + 1 + width * channels])
        for i in range(len(line)):
            left = line[i - channels] if i >= channels else 0
            up, corner = last[i], last[i - channels] if i >= channels else 0
            near = left + up - corner
            paeth = min((abs(near - left), 0, left), (abs(near - up), 1, up), (abs(near - corner), 2, corner))[2]
            line[i] = line[i] + (0, left, up, (left + up) // 2, paeth)[how] & 255
        last = bytes(line)
        rows.append([tuple(last[i : i + 3]) for i in range(0, len(last), channels)])
    return width, rows


PAGE = "<!doctype html><meta charset=utf-8><meta name=color-scheme content='light dark'><body>"
MEASURE = """<pre id=measured></pre><script>
const boxes = [...document.querySelectorAll('.bowstring')].map(e => e.getBoundingClientRect());
document.getElementById('measured').textContent = JSON.stringify({
  hit: window.hit || 0, wide: document.documentElement.scrollWidth, boxes: boxes.map(b => [b.width, b.height]),
  shown: [...document.querySelectorAll('summary')].filter(e => e.checkVisibility()).length,
  names: [...document.querySelectorAll('b')].map(e => e.textContent),
});</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
def test_a_browser_draws_it_small(tmp_path):
    wide = ours(pa.record_batch({f"column_{i}": [i] for i in range(1000)}))._repr_html_()
    deep = ours(nested(60))._repr_html_().replace("<details>", "<details open>")
    evil = ours(pa.record_batch([pa.array([1])] * len(EVIL), names=EVIL))._repr_html_()
    dom = chromium(tmp_path, PAGE + wide + deep + evil + MEASURE, "--virtual-time-budget=2000", "--dump-dom")
    measured = json.loads(Tree(dom).all("pre")[0]["text"])
    assert measured["hit"] == 0 and measured["wide"] <= 800
    heights = [height for _, height in measured["boxes"]]
    assert 300 < heights[0] < 1000 and heights[1] < 2500 and heights[2] < 300, heights
    assert 1 + LIMITS.children < measured["shown"] < 200
    assert measured["names"][-len(EVIL) :] == [repr(name) for name in EVIL]


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
def test_a_screenshot_in_light_and_dark(tmp_path):
    batch = pa.record_batch({"number": pa.array([1, None]), "words": [["a"], None], "text": ["x", "y"]})
    page = PAGE + ours(batch)._repr_html_()
    seen = {}
    for dark in (False, True):
        file = tmp_path / f"{dark}.png"
        chromium(tmp_path, page, f"--screenshot={file}", dark=dark, height=220)
        width, rows = pixels(file)
        assert (width, len(rows)) == (800, 220)
        ground = rows[-1][-1]
        inked = [y for y, row in enumerate(rows) if any(pixel != ground for pixel in row)]
        seen[dark] = ground, inked[0], inked[-1], {pixel for row in rows for pixel in row}
    (light, top, bottom, colours), (dim, _, _, others) = seen[False], seen[True]
    # Five lines: the struct, its bitmap, three columns. Kinds and names have colours, dark ones on light ground.
    assert sum(light) > 700 and sum(dim) < 120
    assert 4 <= top and 70 < bottom < 200
    assert (11, 83, 148) in colours and (122, 62, 0) in colours
    assert (142, 199, 255) in others and (255, 197, 138) in others
    assert not (142, 199, 255) in colours
