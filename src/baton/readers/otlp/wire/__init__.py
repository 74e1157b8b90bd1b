"""The wire: OTLP in any of its forms, and Jaeger's JSON, to conversations."""
