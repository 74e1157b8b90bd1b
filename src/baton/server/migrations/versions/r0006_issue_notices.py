"""What is told of issues outside."""

import sqlalchemy as sa
from alembic import context, op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the table."""
    if context.config.attributes["part"] != "index":
        return
    op.create_table(
        "issue_notice",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("event", sa.BigInteger, nullable=False),
        sa.Column("told", sa.BigInteger, nullable=False),
        sa.Column("outside", sa.Text),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("project", "issue", "channel"),
        if_not_exists=True,
    )
