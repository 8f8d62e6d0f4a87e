import numpy as np
import pytest

pytest.importorskip("matplotlib")

import matplotlib.image

from crowdzoo import Annotations, DataError, compare
from crowdzoo.aggregation import GLAD, DawidSkene
from crowdzoo.quality import quality_report
from crowdzoo.report.plots import plot_comparison, plot_quality

DARK = np.array([0x1D, 0x2B, 0x3A])
GREY = np.array([0xE3, 0xE3, 0xE3])  # rows that nothing is known of


def unfit(self, annotations):
    """In place of the fit of a method for two classes."""
    raise DataError("for two classes, got 3 classes")


def pixels(path):
    """RGB values, int [H, W, 3]."""
    return np.round(matplotlib.image.imread(path)[..., :3] * 255).astype(int)


def share(path, colour):
    return (np.abs(pixels(path) - colour).max(axis=2) <= 1).mean()


def test_methods_level_with_the_best_are_dark_and_those_that_failed_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(GLAD, "fit", unfit)
    annotations = Annotations.from_dense(np.random.default_rng(0).integers(0, 3, (60, 5)))
    gold = np.random.default_rng(0).integers(0, 3, 60)
    found = compare(annotations, gold=gold, methods=["wawa", "glad"])
    path = plot_comparison(found, tmp_path / "comparison.png")
    assert share(path, DARK) > 0.0002
    assert pixels(path).shape == pixels(plot_comparison(
        compare(annotations, gold=gold, methods=["wawa"]), tmp_path / "without.png"
    )).shape  # fmt: skip


def crowd(right, classes=3):
    """A report of 90 tasks by six annotators, who know the answer with that probability."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, classes, (90, 1))
    guesses = generator.integers(0, classes, (90, 6))
    annotations = Annotations.from_dense(np.where(generator.random((90, 6)) < right, truth, guesses))
    return quality_report(annotations, DawidSkene().fit(annotations), bootstrap=0)


def test_a_crowd_that_agrees_has_a_darker_diagonal_and_darker_dots(tmp_path):
    good = share(plot_quality(crowd(1.0), tmp_path / "new" / "good.png"), DARK)
    poor = share(plot_quality(crowd(0.2), tmp_path / "poor.png"), DARK)
    assert good > 0.02
    assert poor < good / 4


@pytest.mark.slow
def test_a_report_without_agreement_can_be_drawn(tmp_path):
    lonely = Annotations.from_arrays(
        [0, 1, 1000], [0, 1, 1], ["a", "b", "b"], tasks=range(1001), classes=["a", "b", "c"]
    )
    path = plot_quality(quality_report(lonely, bootstrap=0), tmp_path / "lonely.png")
    assert share(path, np.array([0x3B, 0x6E, 0xA5])) > 0.001  # the bars
    assert share(path, GREY) > 0.01  # nobody says anything beside another


def saved_figure(monkeypatch):
    """List that receives each figure as it is saved."""
    from matplotlib.figure import Figure

    drawn = []
    plain = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *words, **how: (plain(self, *words, **how), drawn.append(self)))
    return drawn


def words(figure):
    from matplotlib.text import Text

    texts = {text.get_text().replace("\ufe0f", "") for text in figure.findobj(Text)}  # nothing is drawn for it
    return texts - {""}


def font_with(characters, path):
    """A font file whose glyph of each of the characters is a square."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    pen.moveTo((50, 0))
    for corner in ((50, 900), (950, 900), (950, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square = pen.glyph()
    names = [".notdef", *(f"u{ord(each):X}" for each in characters)]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(each): f"u{ord(each):X}" for each in characters})
    builder.setupGlyf(dict.fromkeys(names, square))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": path.stem, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=900, usWinAscent=900, usWinDescent=100)
    builder.setupPost()
    builder.save(path)
    return str(path)


STRANGE = ["猫 安娜", "dog 🐕\ufe0f", "$a$ b", "a name that goes on for longer than there is room"]


def quality_plot(path):
    said = np.repeat(np.arange(4), 5)[:, None].repeat(3, axis=1)
    annotations = Annotations.from_dense(said, classes=STRANGE, annotators=["a", "b", "c"])
    return plot_quality(quality_report(annotations, bootstrap=0), path)


@pytest.mark.slow
def test_names_of_any_script_are_drawn_with_a_font_that_has_them(tmp_path, monkeypatch):
    pytest.importorskip("fontTools")
    from matplotlib import font_manager
    from matplotlib.text import Text

    monkeypatch.setattr(font_manager.fontManager, "ttflist", list(font_manager.fontManager.ttflist))
    for characters, name in (("🐕", "Dogs Sans"), ("猫安娜", "Cats Sans")):
        font_manager.fontManager.addfont(font_with(characters, tmp_path / f"{name}.ttf"))
    drawn = saved_figure(monkeypatch)
    quality_plot(tmp_path / "confusions.png")
    assert {"猫 安娜", "dog 🐕", "$a$ b"} <= words(drawn[0])
    families = {family for text in drawn[0].findobj(Text) for family in text.get_fontfamily()}
    assert {"Cats Sans", "Dogs Sans"} <= families
