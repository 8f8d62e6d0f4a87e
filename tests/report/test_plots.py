import numpy as np
import pytest

from crowdzoo.report.comparison import Comparison
from crowdzoo.training.settings import TrainingSettings

pytest.importorskip("matplotlib")

import matplotlib.image

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene
from crowdzoo.quality import quality_report
from crowdzoo.report.plots import (
    plot_confusions,
    plot_em_history,
    plot_quality,
    plot_training_curves,
)

GREY = np.array([0xE3, 0xE3, 0xE3])  # rows that nothing is known of
CLASSES = ("cat", "dog", "owl")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Pictures of a fourth of the pixels."""
    monkeypatch.setattr("crowdzoo.report.plots.DPI", 75)


def pixels(path):
    """RGB values, int [H, W, 3]."""
    return np.round(matplotlib.image.imread(path)[..., :3] * 255).astype(int)


def share(path, colour):
    return (np.abs(pixels(path) - colour).max(axis=2) <= 1).mean()


@pytest.fixture
def comparison():
    return Comparison(
        dataset="blobs",
        seeds=(0, 1),
        accuracies={"majority": np.array([0.5, 0.6]), "MW": np.array([0.8, 0.9])},
        label_accuracy={},
        seconds={},
        curves={"majority": {"loss": [2.0, 1.0]}, "MW": {"loss": [3.0, 2.5]}},
        confusions={},
        aggregation_history=(),
        settings=TrainingSettings(),
        num_train=3,
        num_eval=1,
    )


def test_the_annotators_with_most_annotations_are_shown(tmp_path):
    """Only the busiest has an identity matrix; with one shown, dark cells must appear."""
    true = np.full((3, 3, 3), 1 / 3)
    true[1] = np.eye(3)
    counts = np.array([[1, 1, 1], [9, 9, 9], [2, 2, 2]])
    dark = np.array([0x1D, 0x2B, 0x3A])
    busiest = plot_confusions(true, true, counts, CLASSES, tmp_path / "busiest.png", shown=1)
    idlest = plot_confusions(true, true, counts[::-1] * [[1], [0], [1]], CLASSES, tmp_path / "idlest.png", shown=1)
    assert share(busiest, dark) > 5 * share(idlest, dark)


def test_histories_are_drawn_as_lines(comparison, tmp_path):
    for path in (
        plot_em_history([-30.0, -20.0, -19.0], tmp_path / "em.png"),
        plot_em_history([-30.0], tmp_path / "single.png"),
        plot_training_curves(comparison.curves, tmp_path / "curves.png"),
    ):
        assert share(path, np.array([0x3B, 0x6E, 0xA5])) > 0.0001


def crowd(right, classes=3):
    """A report of 90 tasks by six annotators, who know the answer with that probability."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, classes, (90, 1))
    guesses = generator.integers(0, classes, (90, 6))
    annotations = Annotations.from_dense(np.where(generator.random((90, 6)) < right, truth, guesses))
    return quality_report(annotations, DawidSkene().fit(annotations), bootstrap=0)


def test_a_crowd_that_agrees_has_a_darker_diagonal_and_darker_dots(tmp_path):
    dark = np.array([0x1D, 0x2B, 0x3A])
    good = share(plot_quality(crowd(1.0), tmp_path / "new" / "good.png"), dark)
    poor = share(plot_quality(crowd(0.2), tmp_path / "poor.png"), dark)
    assert good > 0.02
    assert poor < good / 4


def test_a_report_without_agreement_can_be_drawn(tmp_path):
    lonely = Annotations.from_arrays(
        [0, 1, 1000], [0, 1, 1], ["a", "b", "b"], tasks=range(1001), classes=["a", "b", "c"]
    )
    path = plot_quality(quality_report(lonely, bootstrap=0), tmp_path / "lonely.png")
    assert share(path, np.array([0x3B, 0x6E, 0xA5])) > 0.001  # the bars
    assert share(path, GREY) > 0.01  # nobody says anything beside another


def saved_figure(monkeypatch):
    """List that receives each figure as it is saved."""
    from crowdzoo.report import plots

    drawn = []
    plain = plots.draw_all_characters
    monkeypatch.setattr(plots, "draw_all_characters", lambda figure: (plain(figure), drawn.append(figure)))
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


STRANGE = ["猫", "dog 🐕\ufe0f", "$a$ b", "a name that goes on for longer than there is room"]


def confusions(path):
    matrices = np.stack([np.eye(4)])
    return plot_confusions(matrices, matrices, np.ones((1, 4), int), STRANGE, path, annotators=["安娜"])


def test_names_of_any_script_are_drawn_with_a_font_that_has_them(tmp_path, monkeypatch):
    pytest.importorskip("fontTools")
    from matplotlib import font_manager
    from matplotlib.text import Text

    fonts = [font_with("🐕", tmp_path / "Dogs Sans.ttf"), font_with("猫安娜", tmp_path / "Cats Sans.ttf")]
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: fonts)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", list(font_manager.fontManager.ttflist))
    drawn = saved_figure(monkeypatch)
    confusions(tmp_path / "confusions.png")
    assert {"猫", "dog 🐕", "$a$ b"} <= words(drawn[0])
    assert any("annotator 安娜" in text for text in words(drawn[0]))
    families = {family for text in drawn[0].findobj(Text) for family in text.get_fontfamily()}
    assert {"Cats Sans", "Dogs Sans"} <= families


def test_characters_that_no_font_has_are_drawn_as_boxes_without_a_warning(tmp_path, monkeypatch):
    from matplotlib import font_manager

    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    drawn = saved_figure(monkeypatch)
    confusions(tmp_path / "confusions.png")
    assert {"猫", "$a$ b", "a name that goes on for…"} <= words(drawn[0])
