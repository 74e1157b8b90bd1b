"""A fix of an issue that only a judge found: a server searches for it, and a second judge agrees."""

from __future__ import annotations

import json
import re
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT

import baton
from baton.server.fix_proofs import Proofs
from baton.server.settings import Settings
from baton.server.store import Store
from baton.session.evaluate import evaluate_into
from baton.store import read_evaluation
from baton.testing import LlmServer, Received, Reply, llm_server

from .serving import api
from .test_issues import arrive, rows

pytestmark = pytest.mark.heavy
SHORT = "Hand refunds to refunds, in a few words. Hand parcels to shipping, with the whole message."
WHOLE = SHORT.replace("refunds, in a few words", "refunds, with the whole message")
THINGS = [
    "lamp",
    "chair",
    "desk",
    "clock",
    "radio",
    "kettle",
    "mirror",
    "basket",
    "scarf",
    "vase",
    "drill",
    "tent",
    "piano",
    "ladder",
    "carpet",
    "wardrobe",
    "camera",
    "violin",
    "teapot",
    "blanket",
    "saddle",
    "anchor",
    "hammock",
    "telescope",
    "accordion",
    "freezer",
    "trampoline",
    "pillow",
    "bicycle",
    "lantern",
]
"""Thirty, as messages that are nearly the same are in one part of the split."""


class Models:
    """A model that proposes and judges, and another one that judges.

    They read the request. A dispatch without the number of the order is wrong. The first judge can
    be flattered: it finds all prompts fine that are kind. The proposer writes two texts in turn,
    and is not told which of them helps.
    """

    def __init__(self, *texts: str) -> None:
        self._texts = cycle(texts)
        self.judged_by: dict[str, int] = {}

    def __call__(self, received: Received) -> Reply:
        if "The text as it is" in received.user:
            return Reply(answer={"thinking": "", "text": next(self._texts)})
        model = received.model
        self.judged_by[model] = self.judged_by.get(model, 0) + 1
        call = received.user.partition("with the prompt:")[2].partition("tools that")[0]
        fine = re.search(r"\d{4}", call) or ("small" in model and "dear" in call)
        label = "correct" if fine else "wrong"
        return Reply(answer={"reason": "By the number of the order.", "quote": "", "label": label})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = tmp_path / "shop.py"
    shop = (ROOT / "examples" / "feed" / "shop.py").read_text("utf-8")
    kind = 'few_words = ("dear " if "kind" in rule else "") + " ".join('
    program.write_text(shop.replace('few_words = " ".join(', kind), "utf-8")
    asked = [f"Refund order {4000 + 7 * n} with my broken {each}." for n, each in enumerate(THINGS)]
    asked += [f"Where is parcel {6000 + 3 * n} with the {t}?" for n, t in enumerate(THINGS)]
    cases = {"cases": [{"id": f"c{n}", "input": text} for n, text in enumerate(asked)]}
    (tmp_path / "cases.yaml").write_text(json.dumps(cases), "utf-8")
    return tmp_path


def searched(store: Store, folder: Path, llm: LlmServer) -> tuple[str, str | None, Any]:
    """Return the state, the error and the fix after a search that was asked for by the API."""
    small, large = (llm.judge(model=name, retries=0) for name in ("small", "large"))
    played, agent = folder / "played", f"{folder / 'shop.py'}:desk"
    evaluate_into(played, folder / "cases.yaml", agent, ["dispatch_correctness"], judge=small)
    arrive(store, [(each.trace, each.scores) for each in read_evaluation(played) if each.trace])
    ((key, judged),) = [(row["key"], row["judged"]) for row in rows(store) if row["count"]]
    assert judged
    settings = Settings(
        folder=str(folder / "server"),
        judges={"default": small, "large": large},
        agents={"shop": agent},
    )
    with api(store, live_settings=lambda: settings) as address:
        server = baton.connect(address)
        asked = server.improve_issue(key).proving
        assert asked is not None
        assert asked.state == "waiting"
        proofs = Proofs(store, settings)
        end = time.monotonic() + 500
        try:
            while not proofs.work(time.time()):
                assert time.monotonic() < end
                time.sleep(0.1)
        finally:
            proofs.stop()
        done = server.issue(key)
    assert done.proving is not None
    return done.proving.state, done.proving.error, done.fix


def test_a_text_that_both_judges_find_better_is_proven(store: Store, folder: Path) -> None:
    models = Models(SHORT.replace("few words", "fewer words"), WHOLE)
    with llm_server(models) as llm:
        state, error, fix = searched(store, folder, llm)
    assert error is None, error
    assert state == "done"
    assert fix.after == WHOLE
    assert fix.proof is not None
    assert fix.proof.holds
    assert models.judged_by.keys() == {"small", "large"}


def test_a_text_that_flatters_the_judge_that_found_the_issue_is_not_proven(
    store: Store, folder: Path
) -> None:
    models = Models(SHORT.replace("few words", "few kind words"))
    with llm_server(models) as llm:
        state, error, fix = searched(store, folder, llm)
    assert state == "failed"
    assert "no gain is proven" in (error or "")
    assert fix is None
    assert models.judged_by.keys() == {"small", "large"}
