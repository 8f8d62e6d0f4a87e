"""Fuzzing of the files of `crowdzoo serve`: TF Serving's models in protobuf's text format."""

import functools
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from target import Target

from crowdzoo.errors import ConfigError

MODELS = """model_config_list {
  config {
    name: "pets" base_path: "served/pets" model_platform: "tensorflow"
    model_version_policy { specific { versions: 1 versions: 2 } }
    version_labels { key: "stable" value: 1 }
  }
  config { name: 'b' base_path: "/b" model_version_policy { latest { num_versions: 2 } } }
}
"""
_PIECES = [
    "{", "}", "<", ">", '"', "'", ":", ";", ",", "#", "\\", "\\777", "\\ud800", "[", "]", "-1", "99999999999999999999",
    "1e400", "nan", "config", "model_config_list", "custom_model_config", "[type.googleapis.com/x.Y]", "all {}", "\0",
    "name", "base_path", "value", "key", "versions: [1, 2]", "{" * 3000, "9" * 6000, "é", "\ud800",
]  # fmt: skip


@st.composite
def _texts(draw, text):
    """A valid file with pieces of it replaced."""
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(text)))
        text = (
            text[:place]
            + draw(st.sampled_from(_PIECES) | st.text(max_size=3))
            + text[place + draw(st.integers(0, 9)) :]
        )
    return text.encode("utf-8", "surrogatepass")


@functools.cache
def _file():
    return Path(tempfile.mkdtemp(prefix="crowdzoo-fuzz-")) / "models.config"


def check_models(content):
    """Reads the models of a file; what is refused is refused with a short message that names the file."""
    from crowdzoo.serving.model_settings import read_model_settings

    _file().write_bytes(content)
    try:
        assert read_model_settings(_file())
    except ConfigError as error:
        message = str(error)
        assert message.startswith(str(_file())), message
        assert len(message) < 2000, message[:500]


TARGETS = {
    "models-config": Target(_texts(MODELS) | st.binary(max_size=40), check_models, examples=30),
}
