"""Files of WebAnno and INCEpTION, as version 3.3 of the format has them."""

import pytest

from crowdzoo.data.drawn_spans import DrawnSpan
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.reading.sentences.sentence_files import read_sentences

HEAD = """#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value
#T_SP=webanno.custom.Mark
#T_CH=de.tudarmstadt.ukp.dkpro.core.api.coref.type.CoreferenceLink|referenceType|referenceRelation
#T_RL=webanno.custom.Link|kind|BT_webanno.custom.Mark
#T_SP=webanno.custom.Chunk|chunk

"""
# identifier, value, mark, two of the chain, two of the relation, chunk
ANN = HEAD + "\n".join([
    "",
    "#Text=😀 University of Bonn \\[sic\\] met",
    "1-1\t0-2\t😀\t_\t_\t_\t_\t_\t_\t_\t_",
    "1-2\t3-13\tUniversity\t*[1]\tORG[1]\t_\t_\t_\t_\t_\tNP[7]",
    "1-3\t14-16\tof\t*[1]\tORG[1]\t_\t_\t_\t_\t_\tNP[7]",
    "1-4\t17-21\tBonn\t*[1]|*\tORG[1]|LOC\t*\t_\t_\t_\t_\tNP[7]|P\\|P[8]",
    "1-5\t22-27\t\\[sic\\]\t_\t_\t_\t_\t_\tis\t1-4\t_",
    "1-6\t28-31\tmet\t_\t_\t_\t_\t_\t_\t_\t_",
    "",
    "#Text=Rome,",
    "#Text=Newtown",
    "2-1\t32-36\tRome\t_\t*\t_\t_\t_\t_\t_\t_",
    "2-2\t36-37\t,\t_\t_\t_\t_\t_\t_\t_\t_",
    "2-3\t38-45\tNewtown\t_\t_\t_\t_\t_\t_\t_\t_",
    "2-3.1\t41-45\ttown\t*\tLOC\t_\t_\t_\t_\t_\t_",
    "",
])  # fmt: skip
BOB = (
    HEAD
    + "\n#Text=Rome,\n#Text=Newtown\n2-1\t32-36\tRome\t_\tLOC\t_\t_\t_\t_\t_\t_\n2-2\t36-37\t,\n2-3\t38-45\tNewtown\n"
)
VALUE = {"platform": "webanno", "field": "NamedEntity.value"}


def span(label, *pieces):
    return DrawnSpan(label, pieces)


def test_multi_token_stacked_and_sub_token_spans_are_those_of_the_editor(write):
    write("corpus/ann.tsv", ANN)
    folder = write("corpus/bob.tsv", BOB).parent
    with (
        pytest.warns(UserWarning, match="of 5 spans, 1 lie inside longer ones"),
        pytest.warns(UserWarning, match="left out: relations and chains: 1"),
    ):
        crowd = read_sentences(folder, on_bad_tags="mend", **VALUE)
    assert crowd.annotations.tasks.tolist() == [1, 2]
    assert crowd.tokens == (("😀", "University", "of", "Bonn", "[sic]", "met"), ("Rome", ",", "Newtown"))
    assert crowd.texts == ("😀 University of Bonn [sic] met", "Rome,\nNewtown")
    assert crowd.drawn == {
        (0, 0): (span("ORG", (1, 4)), span("LOC", (3, 4))),
        (1, 0): (span("NamedEntity", (0, 1)), span("LOC", (2, 3))),  # a value was not chosen; a part of a token
        (1, 1): (span("LOC", (0, 1)),),
    }
    assert crowd.num_mended == 1


@pytest.mark.parametrize(
    ("field", "found"),
    [("Chunk.chunk", (span("NP", (1, 4)), span("P|P", (3, 4)))), ("Mark", None), ("NamedEntity.identifier", None)],
)
@pytest.mark.filterwarnings("ignore:.*(inside longer ones|left out. relations)")
def test_a_layer_is_chosen_by_its_name(write, field, found):
    crowd = read_sentences(write("ann.tsv", ANN), platform="webanno", field=field, on_bad_tags="mend")
    if found is None:
        label = field.partition(".")[0]
        assert crowd.answers(0)["ann"][3] in (f"B-{label}", f"I-{label}")
    else:
        assert crowd.drawn[0, 0] == found


def test_without_a_choice_the_layers_are_listed(write):
    with pytest.raises(ConfigError, match=r"questions: 'NamedEntity.identifier', .*'Mark', 'Chunk"):
        read_sentences(write("ann.tsv", ANN), platform="webanno")


@pytest.mark.parametrize(
    ("places", "tasks"),
    [
        ({"ann/d1.tsv": "ann", "ann/d2.tsv": "ann", "bob/d1.tsv": "bob"}, ["d1/2", "d2/2"]),  # a folder by annotator
        ({"a.nn/d1.tsv": "a.nn", "a.nn/d2.tsv": "a.nn", "b.ob/d1.tsv": "b.ob"}, ["d1/2", "d2/2"]),
        ({"d1.txt/ann.tsv": "ann", "d1.txt/bob.tsv": "bob", "d2.txt/ann.tsv": "ann"}, ["d1.txt/2", "d2.txt/2"]),
    ],
)
def test_a_file_is_by_one_annotator_on_one_document(write, tmp_path, places, tasks):
    for place in places:
        write(f"corpus/{place}", BOB)
    crowd = read_sentences(tmp_path / "corpus", **VALUE)
    assert crowd.annotations.tasks.tolist() == tasks
    names = sorted({*places.values()})
    assert [*crowd.answers(0)] == names
    assert [*crowd.answers(1)] == names[:1]


def test_the_curated_document_is_gold(write, tmp_path):
    write("e/annotation/d1.txt/ann.tsv", BOB)
    write("e/curation/d1.txt/CURATION_USER.tsv", BOB)
    crowd = read_sentences(tmp_path / "e", **VALUE)
    assert crowd.gold_tags() == [["B-LOC", "O", "O"]]
    assert crowd.annotations.tasks.tolist() == ["d1.txt/2"]  # as in an export of several documents
    assert crowd.annotations.annotators.tolist() == ["ann"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "2-2\t36-37\t,",
            "2-2\t,",
            r"a.tsv, row 11, column 'line 12': '2-2\\t,' is not a line of a token, such as 1-1<tab>",
        ),
        ("2-3\t38-45\tNewtown", "2-3\t38-45\tNewton", r"column 'line 13': .*Newton' is not in the sentence"),
    ],
)
def test_a_bad_line_is_named_with_file_line_and_value(write, old, new, message):
    path = write("a.tsv", BOB.replace(old, new))
    with pytest.raises(DataError, match=message):
        read_sentences(path, **VALUE)
    write("b/b.tsv", BOB)
    write("b/a.tsv", path.read_text())
    with pytest.warns(UserWarning, match="rows left out: 1"):
        crowd = read_sentences(path.parent / "b", on_bad_rows="reject", **VALUE)
    assert [*crowd.answers(0)] == ["b"]


def test_the_document_as_it_was_imported_is_no_annotator(write):
    """INITIAL_CAS had no spans, so that alpha of two who agree was .31."""
    for who, label in (("INITIAL_CAS", "_"), ("ann", "PER"), ("bob", "PER")):
        text = f"#FORMAT=WebAnno TSV 3.3\n#T_SP=a.Span|kind\n\n\n#Text=Ana\n1-1\t0-3\tAna\t{label}\t\n"
        folder = write(f"annotation/d.txt/{who}.tsv", text).parents[1]
    with pytest.warns(UserWarning, match="sentences of INITIAL_CAS, which nobody annotated: 1"):
        crowd = read_sentences(folder, platform="webanno")
    assert crowd.annotations.annotators.tolist() == ["ann", "bob"]
    assert crowd.annotations.tasks.tolist() == ["d.txt/1"]
