//! Talks to a running server on behalf of the other commands.

use super::Result;
use crate::{auth::root_key, config::Settings, telemetry::Chain};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use std::{collections::BTreeMap, time::Duration};

/// A running server answers within this.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// An access key to log in with.
#[derive(Clone)]
pub struct Credential {
    pub id: String,
    pub secret: SecretString,
}

impl Credential {
    /// `ID:SECRET`, split at the first colon.
    pub fn parse(text: &str) -> Result<Credential, String> {
        match text.split_once(':') {
            Some((id, secret)) if !id.is_empty() && !secret.is_empty() => {
                Ok(Credential { id: id.to_owned(), secret: secret.into() })
            }
            _ => Err("expected ID:SECRET".to_owned()),
        }
    }

    /// The one given, else the root key of the settings, else that of the data folder.
    pub fn of(settings: &Settings, given: Option<Credential>) -> Result<Credential> {
        if let Some(given) = given {
            return Ok(given);
        }
        if let (Some(id), Some(secret)) = (&settings.root_access_key_id, &settings.root_secret_access_key) {
            return Ok(Credential { id: id.clone(), secret: secret.clone() });
        }
        let folder = settings.keys_folder();
        match root_key::load(&folder)? {
            Some(key) => Ok(Credential { id: key.id, secret: key.secret }),
            None => Err(format!(
                "no root key in {}: name the server's folder by --data, or an access key by --credential ID:SECRET or by \
                 the variables TIDEWATER_ROOT_ACCESS_KEY_ID and TIDEWATER_ROOT_SECRET_ACCESS_KEY",
                folder.display()
            )
            .into()),
        }
    }

    pub fn joined(&self) -> String {
        format!("{}:{}", self.id, self.secret.expose_secret())
    }
}

/// # Errors
/// Says what is not ready: the server itself, or a part of it.
pub async fn check_ready(settings: &Settings) -> Result<()> {
    let url = listener_url(settings);
    let answer = http()?.get(format!("{url}/health/ready")).send().await;
    let answer = answer.map_err(|error| format!("not ready: {}", unreachable_server(&url, error)))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let parts: BTreeMap<String, String> = answer.json().await.unwrap_or_default();
    let parts = parts.iter().filter(|(name, said)| *name != "status" && *said != "ready");
    let parts: Vec<String> = parts.map(|(name, said)| format!("{name} {said}")).collect();
    Err(match parts.is_empty() {
        true => format!("not ready: {url} answers {status}: is it a Tidewater catalog?").into(),
        false => format!("not ready: {} (the server at {url} logs why)", parts.join(", ")).into(),
    })
}

/// A logged-in client of the running server's own API.
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: SecretString,
}

impl Client {
    pub async fn login(settings: &Settings, credential: &Credential) -> Result<Client> {
        #[derive(Deserialize)]
        struct Token {
            access_token: String,
        }
        let (http, url) = (http()?, listener_url(settings));
        let request = http
            .post(format!("{url}/v1/oauth/tokens"))
            .basic_auth(&credential.id, Some(credential.secret.expose_secret()))
            .form(&[("grant_type", "client_credentials"), ("scope", "catalog")]);
        let answer = request.send().await.map_err(|error| unreachable_server(&url, error))?;
        if !answer.status().is_success() {
            return Err(format!("the server at {url} does not take access key {}", credential.id).into());
        }
        let token: Token = answer.json().await?;
        Ok(Client { http, url, token: token.access_token.into() })
    }

    /// Sends a request to our API; the answer's JSON, or the server's message as the error.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: http::Method,
        path: &str,
        body: Option<serde_json::Value>,
    ) -> Result<Option<T>> {
        #[derive(Deserialize)]
        struct Wrapper {
            error: Model,
        }
        #[derive(Deserialize)]
        struct Model {
            message: String,
        }
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = request.bearer_auth(self.token.expose_secret());
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = request.send().await?;
        let (status, text) = (answer.status(), answer.bytes().await?);
        if !status.is_success() {
            let message = serde_json::from_slice::<Wrapper>(&text).map(|wrapper| wrapper.error.message);
            return Err(message.unwrap_or_else(|_| format!("the server answers {status}")).into());
        }
        Ok(if text.is_empty() { None } else { Some(serde_json::from_slice(&text)?) })
    }
}

fn unreachable_server(url: &str, error: reqwest::Error) -> String {
    if error.is_connect() {
        format!("no server answers at {url}: is it running, and on the folder that --data names?")
    } else if error.is_timeout() {
        format!("the server at {url} did not answer within {} s", ANSWER_TIMEOUT.as_secs())
    } else {
        // The address stands before it already.
        format!("the server at {url} broke off: {}", Chain(&error.without_url()))
    }
}

fn http() -> Result<reqwest::Client> {
    Ok(reqwest::Client::builder().timeout(ANSWER_TIMEOUT).no_proxy().build()?)
}

/// The catalog's own listener, whatever clients elsewhere are told.
fn listener_url(settings: &Settings) -> String {
    crate::config::url_of(settings.catalog_addr)
}
