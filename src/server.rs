//! Listeners, connection limits, request layers and graceful shutdown.
