"""What fails, grouped into issues: signatures, groups inside of them, names, rates and states."""
