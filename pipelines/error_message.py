"""What an unforeseen error has to say for itself."""


def error_message(error: BaseException) -> str:
    """An error's type and the first line of its text; what Beam and TFX wrap round it stays in the log."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
