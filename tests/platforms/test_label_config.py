"""Labelling configurations of Label Studio."""

import pytest

from crowdzoo.errors import DataError
from crowdzoo.reading.platforms.label_config import read_label_config

OBJECTS = """
  <Text name="text" value="$review"/> <HyperText name="page" value="$html"/> <Paragraphs name="talk" value="$dialogue"/>
  <Image name="image" value="$photo"/> <Audio name="sound" value="$url"/> <List name="list" value="$items"/>
"""


def controls(body):
    return {control.name: control for control in read_label_config(f"<View>{OBJECTS}{body}</View>")}


@pytest.mark.parametrize(
    ("tag", "to_name", "kind"),
    [
        ("Choices", "text", "classification"),
        ("Taxonomy", "sound", "classification"),
        ("Rating", "text", "regression"),
        ("Number", "image", "regression"),
        ("Pairwise", "text,page", "preference"),
        ("Ranker", "list", "preference"),
        ("TextArea", "sound", "free-text"),
        ("Labels", "text", "sequence"),
        ("Labels", "sound", None),
        ("Labels", "image", None),  # without a tag that draws
        ("HyperTextLabels", "page", "sequence"),
        ("ParagraphLabels", "talk", "sequence"),
        ("RectangleLabels", "image", "region"),
        ("PolygonLabels", "image", "region"),
        ("EllipseLabels", "image", "region"),
        ("BrushLabels", "image", "region"),
        ("BitmaskLabels", "image", "region"),
        ("TimeSeriesLabels", "sound", None),
        ("DateTime", "text", None),
        ("Rectangle", "image", None),
        ("SomethingNew", "text", None),
    ],
)
def test_a_control_has_the_kind_of_its_tag_and_of_what_it_is_about(tag, to_name, kind):
    (control,) = controls(f'<{tag} name="q" toName="{to_name}"/>').values()
    assert (control.name, control.tag, control.kind, control.to_name) == ("q", tag, kind, tuple(to_name.split(",")))


def test_classes_are_the_stored_values_in_order():
    mood = controls("""
      <Header value="Mood of $author"/> <Filter name="filter" toName="mood"/>
      <Choices name="mood" toName="text" choice="multiple">
        <View><Choice value="Glad" alias="1"/><Choice value="Sad &amp; tired"/></View><Choice value="Sad &amp; tired"/>
      </Choices>
    """)["mood"]
    assert mood.classes == ("1", "Sad & tired")
    assert mood.multiple
    assert (mood.objects, mood.data_keys) == (("Text",), ("review",))


def test_choices_that_come_from_the_data_have_no_classes():
    (control,) = controls('<Choices name="q" toName="text" value="$options"/>').values()
    assert (control.classes, control.multiple) == ((), False)


TREE = """
  <Choice value="animal" alias="a"><Choice value="dog"/><Choice value="cat" alias="c"/></Choice>
  <Choice value="car"/>
"""


@pytest.mark.parametrize(
    ("tag", "attributes", "classes"),
    [
        ("Taxonomy", "", ("a", "a / dog", "a / c", "car")),
        ("Taxonomy", 'leafsOnly="true"', ("a / dog", "a / c", "car")),
        ("Choices", 'allowNested="true"', ("a / dog", "a / c", "car")),
    ],
)
def test_classes_of_a_taxonomy_are_paths(tag, attributes, classes):
    assert controls(f'<{tag} name="q" toName="text" {attributes}>{TREE}</{tag}>')["q"].classes == classes


def test_a_taxonomy_has_several_classes_unless_one_is_the_most():
    found = controls('<Taxonomy name="a" toName="text"/><Taxonomy name="b" toName="text" maxUsages="1"/>')
    assert (found["a"].multiple, found["b"].multiple) == (True, False)


def test_labels_with_a_tag_that_draws_are_regions_and_the_tag_alone_is_not_asked_for():
    found = controls("""
      <Labels name="label" toName="image"><Label value="cat"/></Labels>
      <Rectangle name="box" toName="image"/> <Polygon name="polygon" toName="image"/>
      <Choices name="size" toName="image" perRegion="true"><Choice value="big"/></Choices>
      <TextArea name="says" toName="image" perRegion="true"/>
      <Choices name="day" toName="image"><Choice value="night"/></Choices>
    """)
    kinds = {name: control.kind for name, control in found.items()}
    assert kinds == {
        "label": "region", "box": None, "polygon": None, "size": "region", "says": None, "day": "classification",
    }  # fmt: skip
    assert found["label"].classes == ("cat",)


def test_choices_for_each_region_of_a_text_are_spans_and_of_a_sound_not_read():
    found = controls("""
      <Choices name="mood" toName="text" perRegion="true"/> <Taxonomy name="type" toName="page" labeling="true"/>
      <Choices name="noise" toName="sound" perRegion="true"/> <Number name="size" toName="image" perItem="true"/>
    """)
    assert [control.kind for control in found.values()] == ["sequence", "sequence", None, None]


def test_a_ranker_with_buckets_sorts_into_groups_and_is_no_ranking():
    found = controls('<Ranker name="q" toName="list"><Bucket name="best" title="Best"/></Ranker>')
    assert (found["q"].kind, found["q"].classes) == (None, ("best",))


def test_limits_of_numbers():
    found = controls("""
      <Rating name="stars" toName="text"/> <Rating name="more" toName="text" maxRating="10"/>
      <Number name="age" toName="text" min="0" max="120"/> <Number name="any" toName="text"/>
    """)
    limits = [control.limits for control in found.values()]
    assert limits == [(1, 5), (1, 10), (0, 120), (None, None)]


def test_sides_of_a_pair_and_what_they_show():
    (pair,) = controls('<Pairwise name="better" toName="text,page"/>').values()
    assert (pair.classes, pair.objects, pair.data_keys) == (
        ("left", "right"),
        ("Text", "HyperText"),
        ("review", "html"),
    )


@pytest.mark.parametrize(
    ("xml", "says"),
    [
        ("<View>\n<Text name='a'", "row 2: is not XML: unclosed token"),
        ("", "is not XML: no element found"),
        ("<View></Choices>", "row 1: is not XML: mismatched tag"),
        ('<!DOCTYPE v [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><View>&b;</View>', "has a document type"),
        ("<View>\ud800</View>", "half a character"),
    ],
)
def test_what_is_no_configuration_is_refused(xml, says):
    with pytest.raises(DataError, match=rf"labelling configuration.*{says}.*Copy it again"):
        read_label_config(xml)


def test_a_configuration_without_questions_has_no_controls():
    assert read_label_config("<View><Text name='a' value='$a'/></View>") == ()
