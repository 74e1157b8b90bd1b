"""Fixes that are to be proven by playing them."""

import sqlalchemy as sa
from alembic import context, op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table."""
    if context.config.attributes["part"] != "index":
        return
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "issue_proof",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("agent", sa.Text, nullable=False),
        if_not_exists=True,
    )
    op.create_index("issue_proof_by_state", "issue_proof", ["state", "due"], if_not_exists=True)
