"""Records and scores as OpenTelemetry: spans and evaluation events, to a file or an endpoint."""
