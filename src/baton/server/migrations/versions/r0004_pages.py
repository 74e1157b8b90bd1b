"""What the pages keep: the secret that signs their cookies, and views that people saved."""

import sqlalchemy as sa
from alembic import context, op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables."""
    if context.config.attributes["part"] != "index":
        return
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "saved_view",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("page", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.UniqueConstraint("project", "page", "name"),
        if_not_exists=True,
    )
    op.create_table(
        "web_secret",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        if_not_exists=True,
    )
