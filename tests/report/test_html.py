"""The page: one document that needs nothing else, shows exactly the names, and fits a telephone."""

from __future__ import annotations

import re
import shutil
import subprocess

from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from report.samples import HOSTILE, INVENTORY, KEY, REPORTS, TENSOR, checkpoint, options, result

from dspark_lint.finding import Report
from dspark_lint.report import picture, render
from dspark_lint.report.escape import name, sentence
from dspark_lint.report.inventories import Cell, Inventory, InventoryRow


if TYPE_CHECKING:
    from pathlib import Path


VOID = {"meta", "link", "br", "img", "hr", "input", "rect", "path"}
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page(HTMLParser):
    """A strict reader: tags are balanced, ids are unique, nothing is fetched."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.codes: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag and what it refers to."""
        self.seen.append(tag)
        values = dict(attrs)
        assert len(values) == len(attrs)
        assert not any(key.startswith("on") for key in values), attrs
        assert "src" not in values
        self.ids += [values["id"]] if values.get("id") else []  # type: ignore[list-item]
        self.targets += [v for k, v in attrs if k in ("href", "aria-labelledby") and v]
        if tag == "code":
            self.codes.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag without content."""
        self.seen.append(tag)
        assert tag in VOID, (tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that is open; a browser writes what is empty with an end."""
        if tag in VOID and self.open[-1] != tag:
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if self.open and self.open[-1] == "style":
            return
        self.text.append(data)
        if self.open and self.open[-1] == "code":
            self.codes[-1] += data


@pytest.mark.parametrize("sample", REPORTS)
def test_page_stands_by_itself(sample: str, tmp_path: Path) -> None:
    """The page is well formed, has unique ids, runs nothing and fetches nothing; its links lead into it."""
    report = REPORTS[sample](tmp_path)
    inventories = {(c.path, r.release): INVENTORY for c in report.checkpoints for r in c.results}
    text = render(report, "html", options(tmp_path, inventories=inventories))
    page = Page(text)

    assert text.startswith("<!DOCTYPE html>\n")
    assert {"script", "iframe", "object", "link", "img", "base", "form"}.isdisjoint(page.seen)
    assert len(set(page.ids)) == len(page.ids)
    assert {t.removeprefix("#") for t in page.targets if not t.startswith("https://example.org/")} <= set(page.ids)
    assert "url(" not in text
    assert "@import" not in text
    assert page.seen.count("html") == page.seen.count("main") == page.seen.count("h1") == 1


@pytest.mark.parametrize("label", HOSTILE)
def test_page_shows_the_names(label: str, tmp_path: Path) -> None:
    """Whatever a name is made of, the page shows it and nothing of it is markup."""
    value = HOSTILE[label]
    found = (TENSOR._replace(tensor=value, message=value, fix=value), KEY._replace(pointer="/" + value))
    where = checkpoint(tmp_path, "a", (result(*found, notes=(value,), unchecked=((value, value),)),), path=value)
    page = Page(render(Report((where,), "1"), "html", options(tmp_path)))

    assert page.codes.count(name(value)) >= 5
    assert page.text.count(sentence(value)) >= 4


def test_page_shows_the_json(tmp_path: Path) -> None:
    """A finding in a JSON file shows the lines around it, the one that is meant marked."""
    text = render(REPORTS["one"](tmp_path), "html", options(tmp_path))

    assert re.findall(r'<span class="row([^"]*)"><i>(\d+)</i>([^<]*)</span>', text) == [
        ("", "5", "  &quot;hidden_size&quot;: 4096,"),
        ("", "6", "  &quot;dflash_config&quot;: {"),
        (" meant", "7", "    &quot;mask_token_id&quot;: 7,"),
        ("", "8", "    &quot;target_layer_ids&quot;: ["),
        ("", "9", "      1,"),
    ]


def test_page_shows_the_tensor(tmp_path: Path) -> None:
    """A finding about a tensor shows its name, what was expected and what is there."""
    text = render(Report((checkpoint(tmp_path, "a", (result(TENSOR),)),), "1"), "html", options(tmp_path))

    assert (
        '<div class="tensor"><span><code>layers.{i}.mlp.up_proj.weight</code></span>'
        "<span>expected <code>[12288, 4096]</code></span><span>found <code>nothing</code></span></div>"
    ) in text


def test_page_says_what_a_finding_means(tmp_path: Path) -> None:
    """Beside its severity a finding says whether the release refuses, or serves badly without a word."""
    text = render(REPORTS["few"](tmp_path), "html", options(tmp_path))

    assert re.findall(r'<span class="badge \w+">(\w+ · \w+)</span>', text) == [
        "error · refused",
        "warning · silent",
        "info · advice",
    ]


@pytest.mark.parametrize("layers", [1, 2, 12])
def test_picture_has_room_for_its_words(layers: int) -> None:
    """A picture is as wide as its title, its names and its shapes are."""
    rows = tuple(InventoryRow(f"layer {i}", (Cell("q.weight", "ok", (4,), (4,)),)) for i in range(layers))
    svg = picture.picture(Inventory(rows), "0")

    (width,) = map(int, re.findall(r'<svg role="img" [^>]* width="(\d+)"', svg))
    ends = [
        int(x) + 7 * len(text)
        for x, text in re.findall(r'<text x="(\d+)" y="\d+" class="(?:head|shape)">([^<]*)</text>', svg)
    ]
    assert width >= max(ends)


def test_page_opens_the_first_findings(tmp_path: Path) -> None:
    """Of two thousand findings all are there and the first stand open."""
    text = render(REPORTS["many"](tmp_path), "html", options(tmp_path))

    assert text.count('<details class="finding ') == 2000
    assert len(re.findall(r'<details class="finding \w+" open>', text)) == 25


def test_matrix_of_releases(tmp_path: Path) -> None:
    """The matrix has a row a checkpoint and a column a release, each cell with words and not with colour alone."""
    text = render(REPORTS["releases"](tmp_path), "html", options(tmp_path))
    cells = re.findall(r'<td class="(\w+)">([^<]*)</td>', text)

    assert cells == [("error", "1 error")] * 5 + [("ok", "ok")] * 5 + [("unchecked", "unchecked")] * 5


def test_rules_are_explained_once(tmp_path: Path) -> None:
    """Each rule that fired is explained once, at the end."""
    text = render(REPORTS["many"](tmp_path), "html", options(tmp_path))

    assert re.findall(r'<h3 id="(\w+)">', text) == ["KEY001", "TEN001"]


def test_picture_of_the_tensors() -> None:
    """Every tensor is a mark of its state with its words; like layers share a picture."""
    svg = picture.picture(INVENTORY, "7")
    Page(svg)

    assert svg.count("<svg ") == 2
    assert re.findall(r"<g><title>([^<]*)</title><rect [^>]* class=\"([\w-]+)\"/>", svg) == [
        ("outside the layers  fc.weight: [8, 16]", "ok"),
        ("layer 0  q.weight: [4, 8]", "ok"),
        ("layer 1  q.weight: [2, 8], expected [4, 8]", "wrong-shape"),
        ("layer 0  k.weight: missing, expected [4, ?]", "missing"),
        ("layer 1  k.weight: not used, [4]", "unused"),
        ("layer 1  &lt;b&gt;x&lt;/b&gt;: unexpected, [1]", "unexpected"),
    ]
    assert '<title id="t7-1">layer 0 to layer 1: 1 tensor as expected, 1 tensor missing, ' in svg
    assert picture.sentence(INVENTORY) == "2 as expected, 1 missing, 1 another shape, 1 unexpected, 1 not used"


def test_picture_is_drawn_once_for_equal_inventories(tmp_path: Path) -> None:
    """Releases with the same tensors share a picture, the newest first."""
    other = Inventory(INVENTORY.rows[:1])
    results = tuple(result(release=release) for release in ("0.29.0", "0.30.0", "0.31.0", "0.32.0"))
    report = Report((checkpoint(tmp_path, "a", results),), "1")
    drawn = (Inventory(()), other, other, INVENTORY)
    inventories = {("a", one.release): inventory for one, inventory in zip(results, drawn, strict=True)}
    text = render(report, "html", options(tmp_path, inventories=inventories))

    assert re.findall(r"<summary>(0\.[^<]*)</summary>", text) == [
        "0.32.0: 2 as expected, 1 missing, 1 another shape, 1 unexpected, 1 not used",
        "0.30.0-0.31.0: 1 as expected",
    ]


def test_picture_is_bounded() -> None:
    """Of thousands of tensors and layers what is wrong is drawn, and the rest is counted."""
    rows = tuple(
        InventoryRow(
            f"layer {layer}",
            tuple(Cell(f"t{i}", "missing" if i == 450 else "ok", (1,), (1,)) for i in range(500)),
        )
        for layer in range(300)
    )
    svg = picture.picture(Inventory(rows), "0")

    assert len(svg) < 5_000_000
    assert ">t450</text>" in svg
    assert "350 more tensors of a layer and 140 more layers not drawn." in svg


# -- in a real browser --------------------------------------------------------------------------------------------


def browse(page: Path, tmp_path: Path) -> tuple[str, str]:
    """The page's document after a browser has laid it out, and what the browser's console said."""
    assert BROWSER
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-extensions",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--hide-scrollbars",
            "--window-size=1400,900",
            "--virtual-time-budget=3000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        check=True,
        timeout=120,
        encoding="utf-8",
    )
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
@pytest.mark.parametrize(
    ("sample", "width"), [("releases", 1280), ("releases", 390), ("hostile", 390), ("long", 390), ("long", 1280)]
)
def test_page_never_scrolls_sideways(sample: str, width: int, tmp_path: Path) -> None:
    """On a telephone and on a desk, no name and no table makes the page wider than the window."""
    report = REPORTS[sample](tmp_path)
    inventories = {(c.path, r.release): INVENTORY for c in report.checkpoints for r in c.results}
    text = render(report, "html", options(tmp_path, inventories=inventories))
    # the only script is this test's, and only after our policy is taken away
    probe = "<script>parent.postMessage([innerWidth, document.documentElement.scrollWidth].join(' '), '*')</script>"
    policy = re.search(r"<meta http-equiv[^>]*>", text)
    assert policy
    (tmp_path / "page.html").write_text(text.replace(policy.group(), "").replace("</body>", f"{probe}</body>"))
    # no browser's window is as narrow as a telephone's; a frame is
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<!DOCTYPE html><title></title><script>onmessage = m => document.title = m.data</script>"
        f'<iframe src="page.html" style="width:{width}px;height:900px;border:0"></iframe>'
    )

    built, said = browse(frame, tmp_path)

    assert said == ""
    window, content = map(int, re.findall(r"<title>(\d+) (\d+)</title>", built)[0])
    assert (window, content) == (width, width)


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
@pytest.mark.parametrize("sample", ["few", "hostile"])
def test_page_in_a_browser(sample: str, tmp_path: Path) -> None:
    """A browser builds exactly the elements we wrote and complains of nothing."""
    report = REPORTS[sample](tmp_path)
    inventories = {(c.path, r.release): INVENTORY for c in report.checkpoints for r in c.results}
    text = render(report, "html", options(tmp_path, inventories=inventories))
    (tmp_path / "page.html").write_text(text, encoding="utf-8")

    built, said = browse(tmp_path / "page.html", tmp_path)

    assert said == ""
    ours, theirs = Page(text), Page(built)
    assert [tag for tag in theirs.seen if tag != "tbody"] == [tag for tag in ours.seen if tag != "tbody"]
    assert (theirs.codes, theirs.ids, theirs.targets) == (ours.codes, ours.ids, ours.targets)
