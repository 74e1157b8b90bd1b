"""Any case there can be, for the tests of conversion."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from baton.model import (
    AnyOrder,
    Case,
    CaseRubric,
    Content,
    ExpectedDispatch,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    Part,
    Scenario,
    Session,
)

# Words that dialects or YAML may take for something else, and any other text.
TRICKY = ["user", "no", "1.5e5", "-.5", "2025-01-01", "null", " a ", "a\n", '{"a": 1}', "é\u0085x"]
names = st.sampled_from(["router", "billing", "writer", "user"])
texts = st.sampled_from(TRICKY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-9, 9) | texts
json: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=3,
)
objects = st.dictionaries(texts, json, max_size=2)
parts = st.builds(
    Part,
    type=st.sampled_from(["file_data", "inline_data"]),
    mime=st.none() | st.just("image/png"),
    uri=st.none() | st.just("gs://b/x.png"),
    sha256=st.none() | st.just("ab" * 32),
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def several(strategy: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(strategy, min_size=least, max_size=3)


contents = st.builds(
    Content, text=maybe(texts), data=maybe(json), parts=maybe(several(parts, least=1))
)
rubrics = st.builds(CaseRubric, text=texts, id=maybe(texts), type=maybe(texts))
transfers = st.builds(
    ExpectedToolCall,
    name=st.just("transfer_to_agent"),
    arguments=maybe(st.fixed_dictionaries({"agent_name": names}) | objects),
    agent=maybe(names),
)
calls = st.builds(
    ExpectedToolCall, name=names | texts, arguments=maybe(objects), agent=maybe(names)
)
turns = st.builds(
    ExpectedTurn,
    input=contents,
    new_session=st.booleans(),
    restart=st.booleans(),
    response=maybe(contents),
    response_contains=maybe(several(texts)),
    response_not_contains=maybe(several(texts)),
    structured=maybe(objects),
    agents=maybe(several(names | texts | st.builds(AnyOrder, any_order=several(names)))),
    dispatches=maybe(
        several(
            st.builds(
                ExpectedDispatch,
                to=names,
                kind=maybe(st.sampled_from(("transfer", "delegate", "sequence", "return"))),
                prompt_contains=maybe(several(texts)),
                tools=maybe(several(texts)),
                parallel=maybe(st.booleans()),
            )
        )
    ),
    tool_calls=maybe(several(calls | transfers)),
    interactions=maybe(
        several(
            st.builds(
                ExpectedVisit,
                agent=names,
                after=maybe(several(names)),
                says=maybe(several(texts)),
            )
        )
    ),
    rubrics=maybe(several(rubrics)),
)
cases = st.builds(
    Case,
    id=texts,
    turns=several(turns),
    scenario=st.none() | st.none() | st.builds(Scenario, start=texts, plan=texts),
    session=st.builds(Session, app=maybe(texts), user=maybe(texts), id=maybe(texts)),
    state=objects,
    final_state=maybe(objects),
    rubrics=several(rubrics),
    evaluators=st.dictionaries(texts, objects, max_size=2),
    labels=st.dictionaries(texts, texts, max_size=2),
    tags=several(texts),
    metadata=objects,
)
