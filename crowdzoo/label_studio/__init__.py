"""A Label Studio project on its server: pull the answers, push back results. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.label_studio.client": "Client LabelStudioError",
        "crowdzoo.label_studio.outcome": "Outcome",
        "crowdzoo.label_studio.project": "Project",
        "crowdzoo.label_studio.pushing": "push",
    },
)
