"""OpenTelemetry: OTLP files and spans in memory to traces: wire -> dialects -> assemble."""
