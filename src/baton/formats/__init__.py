"""Other tools' files as typed structs, and how to read text into them."""
