"""Scores of rescores are marked, and rescores have a table."""

import sqlalchemy as sa
from alembic import context, op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add columns, empty in what is there, and a table; nothing is copied."""
    if context.config.attributes["part"] != "index":
        return
    op.add_column("conversation", sa.Column("named_rules", sa.Text))
    op.add_column("score", sa.Column("made_by", sa.Text))
    op.add_column("score", sa.Column("rescore", sa.BigInteger))
    op.add_column("score", sa.Column("replaced_by", sa.BigInteger))
    op.add_column("judging", sa.Column("rescore", sa.BigInteger))
    op.create_table(
        "rescore",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("by", sa.Text),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("made_by", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("cursor", sa.Text),
        sa.Column("counts", sa.Text, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("ended", sa.Double),
    )
    op.create_index("rescore_by_state", "rescore", ["state", "id"])
