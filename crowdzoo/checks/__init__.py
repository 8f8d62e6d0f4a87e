"""Checks of settings with clear messages, also for methods of your own. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.checks.constraints": "COUNT FLAG MAX_ITER PRIOR SEED TOL Choice Number setting",
    },
)
