"""Errors about requests, with their status in both protocols."""

# name -> HTTP status and gRPC's canonical name, as in TF Serving; two exist in HTTP only
STATUS = {
    "INVALID_ARGUMENT": (400, "INVALID_ARGUMENT"),
    "UNAUTHENTICATED": (401, "UNAUTHENTICATED"),
    "NOT_FOUND": (404, "NOT_FOUND"),
    "INTERNAL": (500, "INTERNAL"),
    "UNAVAILABLE": (503, "UNAVAILABLE"),
    "DEADLINE_EXCEEDED": (504, "DEADLINE_EXCEEDED"),
    "UNIMPLEMENTED": (501, "UNIMPLEMENTED"),
    "METHOD_NOT_ALLOWED": (405, "UNIMPLEMENTED"),
    "TOO_LARGE": (413, "RESOURCE_EXHAUSTED"),
}
# Answer to methods whose signatures use tf.Examples
NO_EXAMPLES = "this server does not answer Classify, Regress and MultiInference; use :predict or Predict"
NO_RELOAD = "this server takes no models by request; change the file given to --config, whose labels it follows"
# gRPC sends the reason as a header, with three bytes per non-ASCII byte, and clients accept 8 KiB of headers
_LONGEST = 1500


class RequestError(Exception):
    """A request that cannot be answered.

    Args:
        reason: one sentence for the client that names the input; shortened to 1,500 bytes.
        code: a key of `STATUS`.
    """

    def __init__(self, reason: str, code: str = "INVALID_ARGUMENT"):
        reason = reason.encode("utf-8", "backslashreplace").decode()  # half a character is valid JSON, but not text
        if len(reason.encode()) > _LONGEST:
            reason = reason.encode()[: _LONGEST - 3].decode(errors="ignore") + "..."
        super().__init__(reason)
        self.reason = reason
        self.code = code

    @property
    def http_status(self) -> int:
        """Status code of the HTTP answer."""
        return STATUS[self.code][0]

    @property
    def grpc_status(self) -> str:
        """Name of the gRPC status."""
        return STATUS[self.code][1]


def check_method(method: str, path: str, allowed: tuple[str, ...]) -> None:
    """Rejects a request with a method that is not allowed."""
    if method not in allowed:
        raise RequestError(f"{method[:20]} {path[:80]}: use {allowed[0]}", "METHOD_NOT_ALLOWED")
