//! Pages of listings (REST specification, "PageToken" and "PageSize").
//!
//! A listing is paged only when `pageToken` is there, and an empty one counts: that is how the first page is asked for.
//! The end is a `null` token, never an empty one and never an extra empty page.

use super::{
    error::{Error, Result},
    path,
};
use crate::catalog::Page;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// What a client asked to see of a listing.
#[derive(Debug, PartialEq, Eq)]
pub enum Window {
    All,
    /// At most `size` names after `after`.
    Page {
        after: Option<String>,
        size: u32,
    },
}

impl Window {
    /// # Errors
    /// `catalog::Error::Invalid` for a token that is not ours and for sizes below 1. Sizes above `size_max` are cut.
    pub fn parse(query: &str, size_max: u32) -> Result<Window> {
        let size = match path::parameter(query, "pageSize")? {
            Some(size) if !size.is_empty() => match size.parse::<u64>() {
                Ok(size) if size > 0 => u32::try_from(size).unwrap_or(u32::MAX).min(size_max),
                _ => return Err(Error::invalid(format!("pageSize is not a whole number above 0: {size}"))),
            },
            _ => size_max,
        };
        match path::parameter(query, "pageToken")? {
            None => Ok(Window::All),
            Some(token) if token.is_empty() => Ok(Window::Page { after: None, size }),
            Some(token) => Ok(Window::Page { after: Some(decode(&token)?), size }),
        }
    }

    /// What to read: one more than is shown, to know whether more follow.
    pub fn page(&self) -> Page {
        match self {
            Window::All => Page::default(),
            Window::Page { after, size } => Page { after: after.clone(), limit: Some(size.saturating_add(1)) },
        }
    }

    /// Cuts what was read to what is shown, and makes the token of the next page.
    pub fn cut(&self, names: &mut Vec<String>) -> Option<String> {
        let Window::Page { size, .. } = self else { return None };
        let size = usize::try_from(*size).unwrap_or(usize::MAX);
        if names.len() <= size {
            return None;
        }
        names.truncate(size);
        names.last().map(|last| URL_SAFE_NO_PAD.encode(last))
    }
}

fn decode(token: &str) -> Result<String> {
    let name = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    name.ok_or_else(|| Error::invalid("pageToken is not one that this server gave"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(n: u32) -> Vec<String> {
        (0..n).map(|n| n.to_string()).collect()
    }

    #[test]
    fn only_a_token_makes_pages() {
        assert_eq!(Window::parse("pageSize=2", 100).unwrap(), Window::All);
        assert_eq!(Window::parse("pageToken=&pageSize=2", 100).unwrap(), Window::Page { after: None, size: 2 });
        assert_eq!(Window::parse("pageToken", 100).unwrap(), Window::Page { after: None, size: 100 });
        assert_eq!(Window::parse("pageToken=&pageSize=5000", 100).unwrap(), Window::Page { after: None, size: 100 });
        for query in ["pageSize=0", "pageToken=&pageSize=-1", "pageToken=&pageSize=abc", "pageToken=%20"] {
            assert!(Window::parse(query, 100).is_err(), "{query}");
        }
    }

    #[test]
    fn the_last_page_has_no_token() {
        let window = Window::Page { after: None, size: 2 };
        assert_eq!(window.cut(&mut names(2)), None);
        let mut three = names(3);
        let token = window.cut(&mut three).unwrap();
        assert_eq!(three, names(2));
        let next = Window::parse(&format!("pageToken={token}&pageSize=2"), 100).unwrap();
        assert_eq!(next, Window::Page { after: Some("1".into()), size: 2 });
        assert_eq!(next.page().limit, Some(3));
        assert_eq!(Window::All.cut(&mut names(3)), None);
    }
}
