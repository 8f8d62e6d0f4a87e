"""Names of any script in pictures: fonts that have their characters."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_all_characters(figure: "Figure") -> None:
    """Gives each text of a figure the fonts that have its characters; `$` is an ordinary character.

    Installed fonts are searched where matplotlib's own has not all of them. A character that none of them has is drawn
    as an empty box. Colour bitmap fonts of emoji cannot be used by matplotlib and are passed over.

    Args:
        figure: whose texts are all there.
    """
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    families = _fonts_for({character for text in texts for character in text.get_text() if not character.isspace()})
    for text in texts:
        text.set_parse_math(False)
        text.set_fontfamily([*text.get_fontfamily(), *families])


def _fonts_for(wanted: set[str]) -> list[str]:
    """Families of fonts that are needed in addition to matplotlib's own."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    default = FT2Font(font_manager.findfont(font_manager.FontProperties()))
    missing = wanted - set(map(chr, default.get_charmap()))
    families: list[str] = []
    # plain sans serif faces first, the same ones on every run
    for path in sorted(font_manager.findSystemFonts(), key=_rank) if missing else []:
        try:
            font = FT2Font(path)
        except (RuntimeError, OSError):  # no font that FreeType reads, or a bitmap font without the wanted size
            continue
        characters = missing & set(map(chr, font.get_charmap()))
        if characters and font.scalable:
            font_manager.fontManager.addfont(path)
            families.append(font.family_name)
            missing -= characters
    return families


def _rank(path: str) -> tuple[bool, bool, str]:
    name = Path(path).stem.lower()
    styled = any(word in name for word in ("bold", "italic", "oblique", "light", "black", "thin", "condensed"))
    return styled, "serif" in name or "mono" in name, name
