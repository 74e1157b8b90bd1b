"""Other tools' files as typed structs, and how text becomes them."""
