"""Instances: what was labelled, as feature vectors, texts, images or sentences. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.reading.instances.annotator_table": "AnnotatorTable read_annotator_table",
        "crowdzoo.reading.instances.check_no_paths": "check_no_paths",
        "crowdzoo.reading.instances.gold": "read_gold read_gold_pairs read_gold_ratings",
        "crowdzoo.reading.instances.images": "IMAGES sampled_images",
        "crowdzoo.reading.instances.instance_kind": "InstanceKind",
        "crowdzoo.reading.instances.instance_kinds": "INSTANCE_KINDS instance_kind recognised",
        "crowdzoo.reading.instances.instances": "Instances check_annotated read_inputs read_instances take_rows",
        "crowdzoo.reading.instances.named_by_image": "named_by_image",
        "crowdzoo.reading.instances.opened": "opened",
        "crowdzoo.reading.instances.predictions": "Predictions read_predictions",
        "crowdzoo.reading.instances.rankings": "read_rankings",
        "crowdzoo.reading.instances.sentences": "SENTENCES",
        "crowdzoo.reading.instances.tables": "TABLES served_tables tables",
        "crowdzoo.reading.instances.texts": "TEXTS read_texts",
        "crowdzoo.reading.instances.vectors": "VECTORS",
    },
)
