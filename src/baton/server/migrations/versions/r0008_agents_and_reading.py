"""Indexes for the page of an agent and for unreadable traces; a table of what a worker reads."""

import sqlalchemy as sa
from alembic import context, op

revision = "0008"
down_revision = "0007"
# An agent's versions, and its failed dispatches.
_INDEXES = {
    "run_by_version": (
        "run",
        ["project", "agent", "agent_version", "model", "started", "conversation", "cost_usd"],
    ),
    "dispatch_by_target_verdict": ("dispatch", ["project", "to_agent", "verdict", "started"]),
}


def upgrade() -> None:
    """Make the indexes, and the table that shows which conversation ended a worker."""
    if context.config.attributes["part"] != "index":
        return
    inspector = sa.inspect(op.get_bind())
    for name, (table, columns) in _INDEXES.items():
        if name not in {each["name"] for each in inspector.get_indexes(table)}:
            op.create_index(name, table, columns)
    if "trace_unread" not in {each["name"] for each in inspector.get_indexes("trace")}:
        failed = sa.text("error IS NOT NULL")
        columns = ["project", "last_seen"]
        op.create_index(
            "trace_unread", "trace", columns, sqlite_where=failed, postgresql_where=failed
        )
    if "being_read" not in inspector.get_table_names():
        op.create_table(
            "being_read",
            sa.Column("project", sa.Integer, nullable=False),
            sa.Column("trace_id", sa.Text, nullable=False),
            sa.Column("begun", sa.Integer, nullable=False),
            sa.PrimaryKeyConstraint("project", "trace_id"),
        )
