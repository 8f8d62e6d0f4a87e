"""`crowdzoo methods`: all deep methods and aggregations, with their requirements and figures."""

import argparse
import json
import textwrap
from typing import Any

from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.report.tables import print_table

WIDTH = 100
NOTE = """\
LabelMe: accuracy against gold, of deep methods on the held-out photographs. `crowdzoo methods NAME` shows all
figures, the paper, the settings, and the line of Python and of the command."""


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("name", nargs="?", metavar="NAME", help="show the card of this method; without it, list all")
    command.add_argument("--kind", choices=tuple(LABEL_KINDS), help="methods for this kind of labels alone")
    command.add_argument("--format", choices=("text", "json"), default="text", help="form of the output (default text)")


def run(arguments: argparse.Namespace) -> None:
    """Print a table of all methods, or the cards of one name."""
    from crowdzoo.report.cards import method_cards

    cards = method_cards(arguments.kind, arguments.name)
    if arguments.format == "json":
        print(json.dumps([card.to_dict() for card in cards], indent=1, ensure_ascii=False))
    elif arguments.name is not None:
        print("\n\n".join(_card(card) for card in cards))
    else:
        _print_list(cards)


def _print_list(cards: list[Any]) -> None:
    for sort, title in (("deep", "deep methods: train a model"), ("aggregation", "aggregation: labels alone")):
        chosen = [card for card in cards if card.sort == sort]
        kinds: dict[str, list[str]] = {}
        for card in chosen:
            kinds.setdefault(card.name, []).append(card.kind)
        first = {card.name: card for card in reversed(chosen)}
        # the first figure is that of the defaults
        best = {name: f"{card.figures[0]['accuracy']:.3f}" if card.figures else "-" for name, card in first.items()}
        rows = [(name, ", ".join(of), best[name], first[name].needs.rstrip(".")) for name, of in kinds.items()]
        print_table(title, ("name", "labels", "LabelMe", "needs"), rows)
        print()
    print(NOTE)


def _card(card: Any) -> str:
    rows = [
        ("labels", card.kind),
        *([("from", card.package)] if card.package else []),
        ("what", card.summary),
        ("paper", card.source),
        ("needs", card.needs),
        *([("can use", ", ".join(card.extras))] if card.extras else []),
        *([("settings", ", ".join(card.settings))] if card.settings else []),
        *(("figure", _figure(figure)) for figure in card.figures),
        *([] if card.figures else [("figure", "none saved on a data set that ships")]),
    ]
    lines = [f"{card.name} ({card.sort})"]
    for name, text in rows:
        lines += textwrap.wrap(text, WIDTH, initial_indent=f"  {name:<9} ", subsequent_indent=" " * 12)
    copied = (f"  {name:<9} {text}" for name, text in (("Python", card.python), ("command", card.command)))
    return "\n".join([*lines, *copied])


def _figure(figure: dict[str, Any]) -> str:
    spread = "" if figure["spread"] is None else f" ± {figure['spread']:.3f} ({figure['runs']} seeds)"
    variant = f", {figure['variant']}" if figure["variant"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in figure["versions"].items())
    return (
        f"{figure['set']}{variant}: accuracy {figure['accuracy']:.3f}{spread}, "
        f"{figure['cpu_seconds']:g} CPU-seconds ({versions})"
    )
