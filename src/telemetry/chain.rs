//! Errors with their causes, on one line.

use std::{error::Error, fmt};

/// Sources shown at most.
const SOURCES_MAX: usize = 16;

/// Displays an error and all its sources, joined by `: `.
pub struct Chain<'a>(pub &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        for _ in 0..SOURCES_MAX {
            let Some(error) = source else { break };
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer failed")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn sources_follow_the_error() {
        let error = Outer("x".parse::<u8>().unwrap_err());
        assert_eq!(Chain(&error).to_string(), "outer failed: invalid digit found in string");
    }
}
