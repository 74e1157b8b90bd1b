"""Sums by day beside those by hour, and sums over conversations."""

import sqlalchemy as sa
from alembic import context, op

revision = "0007"
down_revision = "0006"
_NAMES = ("from_agent", "to_agent", "agent_version", "evaluator")
_INTEGERS = ("count", "passed", "failed", "errors", "skipped")
_SUMS = ("value_sum", "value_count", "input_tokens", "output_tokens", "cost_usd", "seconds")
_REALS = ("value_sum", "cost_usd", "seconds")


def upgrade() -> None:
    """Make the tables, and fill them from what is stored."""
    if context.config.attributes["part"] != "index":
        return
    there = sa.inspect(op.get_bind()).get_table_names()
    if "rollup_day" not in there:
        op.create_table(
            "rollup_day",
            sa.Column("project", sa.Integer, nullable=False),
            sa.Column("day", sa.BigInteger, nullable=False),
            *(sa.Column(name, sa.Text, nullable=False) for name in _NAMES),
            *(_figure(name) for name in (*_INTEGERS, *_SUMS)),
            sa.PrimaryKeyConstraint("project", "day", *_NAMES),
        )
        columns = ["project", "evaluator", "day"]
        op.create_index("rollup_day_by_evaluator", "rollup_day", columns)
        names = ", ".join(_NAMES)
        figures = [*_INTEGERS, *_SUMS]
        summed = ", ".join(f"SUM({name})" for name in figures)
        op.execute(
            f"INSERT INTO rollup_day (project, day, {names}, {', '.join(figures)})"  # noqa: S608
            f" SELECT project, hour / 24, {names}, {summed} FROM rollup"
            f" GROUP BY project, hour / 24, {names}"
        )
    if "conversation_sum" not in there:
        op.create_table(
            "conversation_sum",
            sa.Column("project", sa.Integer, nullable=False),
            sa.Column("day", sa.BigInteger, nullable=False),
            *(_figure(name) for name in _OF),
            sa.PrimaryKeyConstraint("project", "day"),
        )
        # A cast of PostgreSQL rounds, and that of SQLite cuts.
        whole = (
            "FLOOR(started / 86400)"
            if op.get_bind().dialect.name != "sqlite"
            else "started / 86400"
        )
        day = f"COALESCE(CAST({whole} AS BIGINT), -1)"
        op.execute(
            f"INSERT INTO conversation_sum (project, day, {', '.join(_OF)})"  # noqa: S608
            f" SELECT project, {day}, {', '.join(_OF.values())} FROM conversation"
            f" GROUP BY project, {day}"
        )


def _figure(name: str) -> sa.Column[float]:
    type_ = sa.Double if name in _REALS else sa.BigInteger
    return sa.Column(name, type_, nullable=False)


_OF = {
    "count": "COUNT(*)",
    "opened": "COUNT(CASE WHEN state = 'open' THEN 1 END)",
    "passed": "COUNT(CASE WHEN verdict = 'passed' THEN 1 END)",
    "failed": "COUNT(CASE WHEN verdict = 'failed' THEN 1 END)",
    "errors": "COUNT(CASE WHEN verdict = 'error' THEN 1 END)",
    "dispatches": "SUM(dispatches)",
    "input_tokens": "COALESCE(SUM(input_tokens), 0)",
    "input_known": "COUNT(input_tokens)",
    "output_tokens": "COALESCE(SUM(output_tokens), 0)",
    "output_known": "COUNT(output_tokens)",
    "cost_usd": "COALESCE(SUM(cost_usd), 0)",
    "cost_known": "COUNT(cost_usd)",
    "seconds": "COALESCE(SUM(ended - started), 0)",
    "seconds_known": "COUNT(ended - started)",
}
