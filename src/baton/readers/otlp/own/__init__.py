"""How Baton itself writes a record as spans, and how it reads them back."""
