"""Which conversations a worker reads is noted, so that what ends it is known."""

import sqlalchemy as sa
from alembic import context, op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table; nothing is being read."""
    if context.config.attributes["part"] != "index":
        return
    if "being_read" not in sa.inspect(op.get_bind()).get_table_names():
        op.create_table(
            "being_read",
            sa.Column("project", sa.Integer, nullable=False),
            sa.Column("trace_id", sa.Text, nullable=False),
            sa.Column("begun", sa.Integer, nullable=False),
            sa.PrimaryKeyConstraint("project", "trace_id"),
        )
