"""The bar on a terminal."""

from __future__ import annotations

import io

import pytest

from dspark_lint.scan import progress
from dspark_lint.scan.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It does."""
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in a list so that it can be set; and a window of 80 columns."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "80")
    return now


def test_drawn_and_gone(clock: list[float]) -> None:
    """After a while the bar shows share and speed in place, and at the end the line is empty again."""
    stream = Terminal()
    with Progress(2_000_000_000, stream=stream) as bar:
        bar(500_000_000)
        assert stream.getvalue() == ""
        clock[0] += 1
        bar(500_000_000)
        assert stream.getvalue() == ("\r\x1b[Kscanning [" + "#" * 20 + " " * 20 + "]  50% of 2.00 GB, 1.00 GB/s")

    assert stream.getvalue().endswith("GB/s\r\x1b[K")


def test_seldom(clock: list[float]) -> None:
    """However often it is called, it is drawn ten times a second at most."""
    stream = Terminal()
    bar = Progress(1000, stream=stream)
    for _ in range(1000):
        clock[0] += 0.002
        bar(1)

    assert 10 <= stream.getvalue().count("\r") <= 16


def test_quick_scan(clock: list[float]) -> None:
    """What is over in a moment shows nothing."""
    stream = Terminal()
    with Progress(10, stream=stream) as bar:
        clock[0] += 0.4
        bar(10)

    assert stream.getvalue() == ""


def test_narrow(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A window without room for the bar still gets the words."""
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    bar = Progress(0, "x", stream)
    clock[0] += 1
    bar(0)

    assert stream.getvalue() == "\r\x1b[Kx 100% of 0.00 GB, 0.00 GB/s"


@pytest.mark.usefixtures("clock")
def test_interrupted_leaves_a_clean_line(clock: list[float]) -> None:
    """An exception passes, and the line is cleared before it."""
    stream = Terminal()

    def scan() -> None:
        with Progress(10, stream=stream) as bar:
            clock[0] += 1
            bar(5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan()

    assert stream.getvalue().endswith("\r\x1b[K")


def test_no_terminal(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """Into a file or a pipe, standard error here, nothing is written."""
    with Progress(10) as bar:
        clock[0] += 5
        bar(10)

    assert capsys.readouterr() == ("", "")
