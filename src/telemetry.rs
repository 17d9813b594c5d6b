//! Logs, metrics and request ids. No secret ever reaches them.
