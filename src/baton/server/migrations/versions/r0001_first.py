"""The tables of the first version; a store of it was made from the schema, so nothing is to do.

Later revisions change the tables of ``context.config.attributes["part"]`` only, as the inbox and
the index are two files with SQLite.
"""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing."""
