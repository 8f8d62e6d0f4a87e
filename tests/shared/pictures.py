"""Files of images."""

import io


def encoded(picture, kind, **settings):
    """The bytes of a file of a PIL image."""
    stream = io.BytesIO()
    picture.save(stream, kind, **settings)
    return stream.getvalue()
