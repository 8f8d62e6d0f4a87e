import json
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from csv_files import write_csv
from known_models import save_model

# the extra `pipeline` brings it; without it there is nothing to test here
if find_spec("tfx") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import apache_beam as beam
    import stores  # noqa: F401, `store:/` is a scheme then
    import tensorflow as tf

    from crowdzoo.components.annotation_example_gen import AnnotationExampleGen
    from crowdzoo.components.artifacts import AnnotationsArtifact, AnnotatorReport
    from crowdzoo.components.crowd_aggregator import CrowdAggregator
    from crowdzoo.components.evaluator import Evaluator
    from crowdzoo.components.input_files import content_hashes
    from crowdzoo.components.tfx_internals import standard_artifacts
    from crowdzoo.kinds import KINDS


class Folder:
    """A folder of inputs, and the components run on it by `test_call`."""

    def __init__(self, path):
        self.path = path
        self.count = 0

    @staticmethod
    def pipeline(workers=1):
        more = ["--direct_running_mode=multi_threading", f"--direct_num_workers={workers}"] if workers > 1 else []
        return beam.Pipeline(argv=["--runner=FnApiRunner", *more])

    @staticmethod
    def artifact(kind, folder):
        folder.mkdir(parents=True)
        made = kind()
        made.uri = str(folder)
        return made

    @staticmethod
    def records(examples, split):
        """The tf.Examples of a split as dictionaries of lists, in the files' order."""
        found = []
        for file in sorted(tf.io.gfile.glob(f"{examples.uri}/Split-{split}/*")):
            for record in tf.data.TFRecordDataset(file, "GZIP").as_numpy_iterator():
                feature = tf.train.Example.FromString(record).features.feature
                found.append(
                    {key: list(getattr(value, value.WhichOneof("kind")).value) for key, value in feature.items()}
                )
        return found

    def write(self, annotations, instances):
        """Writes annotations, rows of (task, annotator, label), and instances, a dictionary of columns."""
        write_csv(self.path / "answers.csv", ("task", "annotator", "label"), *annotations)
        self.write_instances(instances)

    def instances(self):
        """The columns of the instances, as lists."""
        return pyarrow.parquet.read_table(self.path / "instances.parquet").to_pydict()

    def write_instances(self, columns):
        pyarrow.parquet.write_table(pa.table(columns), self.path / "instances.parquet")

    def generate(self, hashes=None, **options):
        """Runs AnnotationExampleGen, on files with these hashes; returns its artifacts (examples, annotations)."""
        self.count += 1
        outputs = {
            "examples": self.artifact(standard_artifacts.Examples, self.path / f"examples{self.count}"),
            "annotations": self.artifact(AnnotationsArtifact, self.path / f"annotations{self.count}"),
        }
        settings = {
            "kind": "classification",
            "annotations": str(self.path / "answers.csv"),
            "instances": str(self.path / "instances.parquet"),
            "classes": None,
            "on_bad_rows": "error",
            "on_duplicate": "error",
            "eval_fraction": 0.25,
            **options,
        }
        files = {key: settings.get(key) for key in KINDS[settings["kind"]].options.inputs}
        AnnotationExampleGen.test_call(
            **outputs,
            settings=json.dumps(settings),
            fingerprint=json.dumps(hashes or content_hashes(files)),
            code_version="",
        )
        return outputs["examples"], outputs["annotations"]

    def aggregate(self, examples, annotations, method="majority-vote", workers=1, **arguments):
        """Runs CrowdAggregator; returns its artifacts (examples, report). One worker fits small tables itself."""
        self.count += 1
        outputs = {
            "aggregated_examples": self.artifact(standard_artifacts.Examples, self.path / f"aggregated{self.count}"),
            "report": self.artifact(AnnotatorReport, self.path / f"report{self.count}"),
        }
        CrowdAggregator.test_call(
            examples=examples,
            annotations=annotations,
            **outputs,
            settings=json.dumps({"method": method, "arguments": arguments, "seed": 0}),
            code_version="",
            beam_pipeline=self.pipeline(workers),
        )
        return outputs["aggregated_examples"], outputs["report"]

    @classmethod
    def evaluate(cls, examples, base, write_model, **settings):
        """Runs Evaluator on the model that `write_model(folder)` exports; returns summary, blessing and its files."""
        kinds = {
            "model": standard_artifacts.Model,
            "evaluation": standard_artifacts.ModelEvaluation,
            "blessing": standard_artifacts.ModelBlessing,
        }
        artifacts = {name: cls.artifact(kind, base / name) for name, kind in kinds.items()}
        write_model(base / "model" / "Format-Serving")
        Evaluator.test_call(
            examples=examples,
            **artifacts,
            settings=json.dumps({"tolerance": 0.0, "minimum": 0.0, **settings}),
            code_version="",
        )
        summary = json.loads((base / "evaluation" / "evaluation.json").read_text())
        return summary, artifacts["blessing"], [path.name for path in (base / "blessing").iterdir()]


@pytest.fixture(scope="session")
def new_folder():
    """The class `Folder`, for fixtures that last longer than a test."""
    return Folder


@pytest.fixture(scope="session")
def linear_model():
    """A function that saves a served model of three features, and returns its folder."""

    def linear_model(folder, weights):
        """A served model of three features: softmax of `instances @ weights`."""

        def answer(instances):
            probabilities = tf.nn.softmax(instances @ tf.constant(weights, tf.float32))
            label = tf.argmax(probabilities, axis=1)
            return {"probabilities": probabilities, "label": label, "class": tf.gather(["x", "y", "z"], label)}

        return save_model(folder, answer, instances=("float32", 3))

    return linear_model


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def write_crowd():
    """A function that writes a crowd's answers and instances into a Folder."""

    def write(folder):
        """Forty tasks, thirty of them for training, each labelled by three of five annotators."""
        generator = np.random.default_rng(0)
        gold = generator.integers(0, 3, 40)
        rows = []
        for task in range(40):
            for annotator in generator.choice(5, 3, replace=False):
                right = generator.random() < 0.4 + 0.12 * annotator
                rows.append((f"t{task}", f"a{annotator}", "xyz"[gold[task] if right else generator.integers(0, 3)]))
        features = np.eye(3)[gold] * 2 + generator.normal(size=(40, 3))
        folder.write(
            rows,
            {
                "task": [f"t{task}" for task in range(40)],
                "features": pa.array(features.astype(np.float32).tolist()),
                "gold": ["xyz"[code] for code in gold],
                "split": ["train"] * 30 + ["eval"] * 10,
            },
        )
        return folder

    return write


@pytest.fixture
def crowd_folder(folder, write_crowd):
    """The folder of a test, with a crowd's answers and instances."""
    return write_crowd(folder)


@pytest.fixture(scope="module")
def shared_crowd(tmp_path_factory, new_folder, write_crowd):
    """The same with the outputs of AnnotationExampleGen and of a vote, for the tests of a file that only read."""
    folder = write_crowd(new_folder(tmp_path_factory.mktemp("crowd")))
    folder.examples, folder.annotations = folder.generate()
    folder.aggregated, folder.report = folder.aggregate(folder.examples, folder.annotations)
    return folder
