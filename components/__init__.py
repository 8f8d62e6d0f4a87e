"""TFX components, which are thin wrappers of crowdzoo. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.components.annotation_example_gen": "AnnotationExampleGen",
        "crowdzoo.components.crowd_aggregator": "CrowdAggregator",
        "crowdzoo.components.crowd_report": "CrowdReport",
        "crowdzoo.components.drift_validator": "DriftValidator",
        "crowdzoo.components.evaluator": "Evaluator",
        "crowdzoo.components.module_trainer": "ModuleTrainer",
        "crowdzoo.components.module_transform": "ModuleTransform",
        "crowdzoo.components.pusher": "Pusher",
    },
)
