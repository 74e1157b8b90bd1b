"""Indexes for the page of an agent: its versions, and its dispatches that failed."""

import sqlalchemy as sa
from alembic import context, op

revision = "0008"
down_revision = "0007"
_INDEXES = {
    "run_by_version": (
        "run",
        ["project", "agent", "agent_version", "model", "started", "conversation", "cost_usd"],
    ),
    "dispatch_by_target_verdict": ("dispatch", ["project", "to_agent", "verdict", "started"]),
}


def upgrade() -> None:
    """Make the indexes."""
    if context.config.attributes["part"] != "index":
        return
    inspector = sa.inspect(op.get_bind())
    for name, (table, columns) in _INDEXES.items():
        if name not in {each["name"] for each in inspector.get_indexes(table)}:
            op.create_index(name, table, columns)
