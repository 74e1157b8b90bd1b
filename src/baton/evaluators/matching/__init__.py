"""How what is expected is compared with what happened: values, texts, calls, dispatches."""
