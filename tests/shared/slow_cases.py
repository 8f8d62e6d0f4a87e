"""quick: cases of a parametrised test, of which the further ones are marked slow."""

import pytest


def quick(*cases, slow=()):
    """The cases, then those that only `make test-all` runs; a tuple holds the values of several arguments."""
    further = (case if isinstance(case, tuple) else (case,) for case in slow)
    return [*cases, *(pytest.param(*case, marks=pytest.mark.slow) for case in further)]
