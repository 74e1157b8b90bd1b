"""Runs the revisions, on the connection that it is given."""

from alembic import context

options = context.config.attributes
context.configure(
    connection=options["connection"],
    version_table=f"{options['part']}_revision",
    # SQLite cannot change a column: the table is made again and copied.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
