"""The wire: converts OTLP in any of its formats, and Jaeger's JSON, to conversations."""
