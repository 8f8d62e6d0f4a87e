"""A crowd as tf.Examples, for trainers of TFX pipelines. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.records.example_dataset": "ExampleDataset",
        "crowdzoo.records.example_files": "read_dataset_info",
        "crowdzoo.records.transformed_instances": "TransformedInstances",
    },
)
