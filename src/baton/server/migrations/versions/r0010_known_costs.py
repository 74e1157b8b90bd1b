"""Sums of costs say how many of the costs are known."""

import sqlalchemy as sa
from alembic import context, op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the number of known costs: for sums of before, all of them where there is a cost."""
    if context.config.attributes["part"] != "index":
        return
    if _add("rollup"):
        op.execute("UPDATE rollup SET cost_known = count WHERE cost_usd > 0")
    if _add("rollup_day"):
        same = " AND ".join(f"hours.{name} = rollup_day.{name}" for name in _KEYS)
        op.execute(
            "UPDATE rollup_day SET cost_known = COALESCE((SELECT SUM(hours.cost_known)"  # noqa: S608
            f" FROM rollup AS hours WHERE {same}"
            " AND hours.hour BETWEEN rollup_day.day * 24 AND rollup_day.day * 24 + 23), 0)"
        )


def _add(table: str) -> bool:
    """Add the column, unless the table has it."""
    there = {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}
    if "cost_known" in there:
        return False
    column = sa.Column("cost_known", sa.BigInteger, nullable=False, server_default="0")
    op.add_column(table, column)
    return True


_KEYS = ("project", "from_agent", "to_agent", "agent_version", "evaluator")
