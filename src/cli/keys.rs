//! `tidewater keys`: access keys of the running server.

use super::{
    Result,
    client::{Client, Credential},
    output::{self, date},
};
use crate::config::Settings;
use clap::Subcommand;
use http::Method;
use serde::Deserialize;
use serde_json::json;

#[derive(Subcommand)]
pub enum Action {
    /// Make a key; its secret is shown this once
    Create {
        /// Whom the key speaks for; shown in logs
        principal: String,
        /// Seconds until it stops working; without it, never
        #[arg(long, value_name = "SECONDS")]
        lifetime_s: Option<u64>,
    },
    /// List all keys
    List,
    /// Delete a key, and with it whatever was issued on it
    Delete {
        /// The key's id, as `create` and `list` show it
        access_key_id: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Created {
    access_key_id: String,
    secret_access_key: String,
}

#[derive(Deserialize)]
struct Listed {
    keys: Vec<Key>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Key {
    access_key_id: String,
    principal: String,
    created_at_ms: i64,
    expires_at_ms: Option<i64>,
}

pub async fn run(settings: &Settings, action: Action, credential: Option<Credential>) -> Result<()> {
    let client = Client::login(settings, &Credential::of(settings, credential)?).await?;
    match action {
        Action::Create { principal, lifetime_s } => {
            let request = json!({"principal": principal, "lifetime-s": lifetime_s});
            let created = client.call::<Created>(Method::POST, "/api/v1/keys", Some(request)).await?;
            let created = created.ok_or("the server's answer is empty")?;
            output::print(&format!(
                "access key id      {}\nsecret access key  {}   (not shown again)\n",
                created.access_key_id, created.secret_access_key
            ))
        }
        Action::List => {
            let listed = client.call::<Listed>(Method::GET, "/api/v1/keys", None).await?;
            let keys = listed.map(|listed| listed.keys).unwrap_or_default();
            output::print(&keys.iter().map(line).collect::<String>())
        }
        Action::Delete { access_key_id } => {
            let id = percent_encoding::utf8_percent_encode(&access_key_id, percent_encoding::NON_ALPHANUMERIC);
            client.call::<serde_json::Value>(Method::DELETE, &format!("/api/v1/keys/{id}"), None).await?;
            output::print(&format!("deleted {access_key_id}\n"))
        }
    }
}

fn line(key: &Key) -> String {
    let expires = key.expires_at_ms.map_or("never".to_owned(), date);
    let created = date(key.created_at_ms);
    format!("{}  {}  created {created}  expires {expires}\n", key.access_key_id, key.principal)
}
