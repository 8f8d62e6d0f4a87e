"""A request that cannot be answered, with its status in both protocols."""

__all__ = ["RequestError"]

# gRPC's canonical name -> HTTP status, as TF Serving maps them; the last two exist in HTTP only
HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "METHOD_NOT_ALLOWED": 405,
    "TOO_LARGE": 413,
}


class RequestError(Exception):
    """What is wrong with a request.

    Args:
        reason: one sentence for whoever sent it; names the input.
        code: a key of `HTTP_STATUS`.
    """

    def __init__(self, reason: str, code: str = "INVALID_ARGUMENT"):
        super().__init__(reason)
        self.reason = reason
        self.code = code

    @property
    def http_status(self) -> int:
        """Status of the HTTP answer."""
        return HTTP_STATUS[self.code]
