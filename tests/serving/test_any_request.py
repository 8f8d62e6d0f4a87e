"""Whatever is sent, the answer is an answer or a reason, never an internal error."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdzoo.serving.metrics import RequestRecord
from crowdzoo.serving.request_error import RequestError

# leaves and nests that come close to a good request as well as far from it
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from(["ann", "bob", 1.0, 2.5, {"b64": "YW5u"}, {"b64": "?"}, 10**400]),
)  # fmt: skip
vectors = st.lists(st.floats(width=32), min_size=3, max_size=5)
rows = st.one_of(
    vectors, st.fixed_dictionaries({"instances": vectors}, optional={"annotator": leaves, "other": leaves}), leaves
)
values = st.recursive(st.one_of(leaves, rows), lambda inner: st.lists(inner, max_size=4), max_leaves=12)
requests = st.fixed_dictionaries(
    {},
    optional={
        "instances": st.one_of(st.lists(rows, max_size=3), values),
        "inputs": st.one_of(values, st.dictionaries(st.sampled_from(["instances", "annotator", "x"]), values)),
        "signature_name": st.one_of(st.sampled_from(["", "serving_default", "annotators"]), leaves),
    },
)


def answer(server, body):
    record = RequestRecord("REST")
    return server._rest_service.answer("/v1/models/pets:predict", "", body, record, lambda: False)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.one_of(st.binary(max_size=40), requests.map(lambda request: json.dumps(request).encode())))
def test_any_body_gets_an_answer_or_a_reason(server, body):
    try:
        answered = json.loads(answer(server, body))
        outcome = "an answer" if list(answered) in (["predictions"], ["outputs"]) else answered
    except RequestError as error:
        outcome = "a reason" if error.http_status == 400 and error.reason else error
    assert outcome in ("an answer", "a reason")
