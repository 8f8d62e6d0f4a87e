"""Files of COCO as annotators' tools write them."""


def coco_file(images, categories, annotations, size=None):
    """Images and categories as {id: name}; annotations, which get ids; height and width of all images."""
    pixels = {} if size is None else dict(zip(("height", "width"), size, strict=True))
    return {
        "images": [{"id": number, "file_name": name, **pixels} for number, name in images.items()],
        "categories": [{"id": number, "name": name} for number, name in categories.items()],
        "annotations": [{"id": place, **each} for place, each in enumerate(annotations)],
    }
