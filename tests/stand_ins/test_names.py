"""Names that stand-ins are for: a misspelt one lets nothing run, another one does no harm."""

from __future__ import annotations

import pytest

from baton.model import ProviderError, StandIns
from baton.model.stand_ins import StandIn
from baton.stand_ins import check_names

KNOWN = ["pay_back", "mcp__shop__pay", "mcp__shop__pay_out", "Bash"]


def check(*names: str) -> None:
    ins = StandIns(tools={name: StandIn(mode="mock") for name in names})
    check_names(ins, lambda: KNOWN, lambda: ["refunds"])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pay_bak", "pay_back"),
        ("pay", "mcp__shop__pay"),
        ("mcp__shop__pya", "mcp__shop__pay"),
        ("mcp__shp__pay", "mcp__shop__pay"),
        ("bash", "Bash"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(
        ProviderError, match=rf"for the unknown tool `{name}`; did you mean `{meant}`"
    ):
        check(name)
    check(name, meant)


@pytest.mark.parametrize("name", ["*", "look_up", "mcp__shop__pay_in", "mcp__bank__transfer"])
def test_a_name_that_is_like_no_other_is_let_pass(name: str) -> None:
    check(name)


def test_agents_and_their_own_tools_are_examined_too() -> None:
    with pytest.raises(
        ProviderError, match=r"for the unknown agent `refnds`; did you mean `refunds`"
    ):
        check_names(StandIns(agents={"refnds": StandIn()}), lambda: KNOWN, lambda: ["refunds"])
    own = StandIn(tools={"pay_bak": StandIn()})
    with pytest.raises(ProviderError, match="did you mean `pay_back`"):
        check_names(StandIns(agents={"refunds": own}), lambda: KNOWN, lambda: ["refunds"])
