"""The pipeline: its definition, and one file per orchestrator that runs or compiles it. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.pipelines.config.load": "load_config",
        "crowdzoo.pipelines.kubeflow": "compile_pipeline",
        "crowdzoo.pipelines.local": "run",
        "crowdzoo.pipelines.pipeline": "create_pipeline",
        "crowdzoo.pipelines.run_result": "RunResult",
    },
)
