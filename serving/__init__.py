"""A local server with TF Serving's REST and gRPC APIs, and a client for both. Names load when first used."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.serving.client": "Client",
        "crowdzoo.serving.curl": "curl_example",
        "crowdzoo.serving.limits": "Limits",
        "crowdzoo.serving.server": "Server serve",
    },
)
