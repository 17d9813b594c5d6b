//! The S3 wire protocol in front of the embedded store.
//!
//! A request is parsed from its raw target into one `Operation` (pure), authenticated by SigV4, authorised, and
//! dispatched by matching. Bodies stream both ways. What S3 knows and this server does not is answered
//! `NotImplemented`, never with something like success. A refused request is `AccessDenied` alike for what is hidden
//! and what is missing.
//!
//! Elsewhere: keys and grants are `auth`'s, bytes and names on disk are `store`'s, listeners and request lines are
//! `server`'s, which reads [`Answered`] off each answer.

mod access;
mod answer;
mod authenticate;
pub mod body;
mod bucket_policy;
mod bucket_tags;
mod buckets;
mod checksum;
pub mod chunked;
mod complete;
mod conditions;
mod config;
mod copy;
mod cors;
mod delete;
mod error;
mod front;
mod headers;
pub mod inputs;
pub mod intent;
mod list;
mod multipart;
mod objects;
mod operation;
mod post_form;
mod post_object;
mod post_policy;
mod query;
mod range;
mod receive;
pub mod sigv4;
mod sts;
#[cfg(test)]
mod tests;
mod xml;

pub use answer::{Answered, Broken, S3Body};
pub use authenticate::Credentials;
pub use front::{Front, Limits};
