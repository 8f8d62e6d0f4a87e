"""Instances: what was labelled, as feature vectors, texts, images or sentences. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.reading.instances.annotator_table": "AnnotatorTable read_annotator_table",
        "crowdzoo.reading.instances.gold": "read_gold read_gold_pairs read_gold_ratings",
        "crowdzoo.data.instance_kinds": "IMAGES INSTANCE_KINDS SENTENCES TABLES TEXTS VECTORS InstanceKind "
        "instance_kind",
        "crowdzoo.reading.instances.images": "check_no_paths sampled_images",
        "crowdzoo.reading.instances.readers": "recognised",
        "crowdzoo.reading.instances.instances": "Instances check_annotated read_inputs read_instances take_rows",
        "crowdzoo.reading.instances.export_instances": "named_by_image",
        "crowdzoo.reading.instances.upright_image": "opened",
        "crowdzoo.reading.instances.predictions": "Predictions read_predictions",
        "crowdzoo.reading.instances.rankings": "read_rankings",
        "crowdzoo.reading.instances.tables": "served_tables tables",
        "crowdzoo.reading.instances.texts": "read_texts",
    },
)
