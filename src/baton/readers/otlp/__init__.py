"""Convert OTLP files and spans in memory to traces, in three stages: wire, dialects, assembly."""
