"""BadValue: what is wrong with an entry of an export."""


class BadValue(Exception):  # noqa: N818  becomes a BadRow, which names file and row as well
    """A value that a reader cannot take.

    Args:
        key: where it stands in its entry, such as "annotations[0].completed_by".
        value: the value; None where the key is missing.
        reason: what is wrong and what to do, as the end of a sentence.
    """

    def __init__(self, key: str | None, value: object, reason: str):
        super().__init__(key, value, reason)
        self.key, self.value, self.reason = key, value, reason
