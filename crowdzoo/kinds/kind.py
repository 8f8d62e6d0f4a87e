"""Kind: everything that belongs to one kind of label, in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from crowdzoo.data.label_kinds import LabelKind
from crowdzoo.errors import ConfigError
from crowdzoo.kinds.aggregating import Aggregating
from crowdzoo.kinds.options import KindOptions
from crowdzoo.kinds.prediction import Prediction
from crowdzoo.kinds.reading import Reading
from crowdzoo.kinds.scoring import Scoring
from crowdzoo.kinds.training import Training

if TYPE_CHECKING:
    from crowdzoo.kinds.measure import Measure
    from crowdzoo.kinds.page import KindPage
    from crowdzoo.kinds.questions import Questions
    from crowdzoo.kinds.records import Records


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of label: each part is a value of a class with a few methods, which commands and components call.

    The last four parts are loaded when they are first used, as they import more: Keras, TensorFlow or Numba.

    Attributes:
        labels: name, title in messages, and what arrays of such labels look like.
        options: names and values of its options and input files, as data.
        reading: from files to what the aggregators fit, and gold.
        aggregation: methods, and rows of a table on their results.
        scoring: how answers are compared with gold.
        training: base models, deep methods and what they learn from.
        prediction: what an exported model answers, and how it is written.
        load_page: imports the class of the report's page.
        load_measure: imports the class by which `compare` compares methods.
        load_questions: imports what `crowdzoo next` asks; None: it is not for this kind.
        load_records: imports what the pipeline does; None: there is no pipeline.
    """

    labels: LabelKind
    options: KindOptions
    reading: Reading
    aggregation: Aggregating
    scoring: Scoring
    training: Training
    prediction: Prediction
    load_page: Callable[[], type[KindPage]]
    load_measure: Callable[[], type[Measure]]
    load_questions: Callable[[], Questions] | None = None
    load_records: Callable[[], Records] | None = None

    @property
    def name(self) -> str:
        """As in files, in configurations and after `--kind`."""
        return self.labels.name

    @property
    def title(self) -> str:
        """What is labelled or given, in messages: "classes", "ratings"."""
        return self.labels.title

    @cached_property
    def page(self) -> type[KindPage]:
        """What the page of a report says."""
        return self.load_page()

    @cached_property
    def measure(self) -> type[Measure]:
        """How methods are compared."""
        return self.load_measure()

    @cached_property
    def questions(self) -> Questions | None:
        """What `crowdzoo next` asks; None: nothing."""
        return None if self.load_questions is None else self.load_questions()

    @cached_property
    def records(self) -> Records:
        """What the pipeline does with such labels.

        Raises:
            ConfigError: there is no pipeline for them.
        """
        if self.load_records is None:
            raise ConfigError(
                f"there is no pipeline of {self.title}: crowdzoo aggregate --method NAME --gold FILE says how far a "
                "method is from gold."
            )
        return self.load_records()

    def __repr__(self) -> str:
        return f"<kind {self.name}>"
