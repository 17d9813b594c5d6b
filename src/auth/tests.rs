use super::{
    grants::{Access, Action, Authority, Resource, Scope},
    root_key::Place,
    *,
};
use crate::db::testing::on_both;
use std::path::Path;

const NOW_MS: i64 = 1_700_000_000_000;
const LIFETIME_S: u64 = 600;

on_both!(
    right_secret_gets_a_token_that_verifies,
    wrong_secrets_and_unknown_ids_are_refused_alike,
    tokens_end_with_their_time,
    exchange_gives_a_later_token,
    tokens_and_vended_keys_end_with_their_access_key,
    keys_deleted_elsewhere_end_within_the_bound,
    vended_keys_reach_their_prefix_until_they_expire,
    access_key_without_session_token_signs_with_its_secret,
    expired_access_keys_are_refused,
    first_start_makes_a_root_key_that_the_next_start_uses,
    root_key_of_the_settings_takes_the_place_of_another,
    replica_with_another_master_key_is_refused,
    replicas_with_one_master_key_know_each_others_tokens,
    root_key_cannot_be_deleted,
);

struct World {
    _folder: tempfile::TempDir,
    auth: Auth,
    db: Db,
}

impl World {
    async fn new(db: Db) -> World {
        let folder = tempfile::tempdir().unwrap();
        let auth = start(folder.path(), &db).await;
        World { _folder: folder, auth, db }
    }

    async fn key(&self) -> NewKey {
        self.auth.create_key("ada", None, NOW_MS).await.unwrap()
    }

    async fn token(&self, key: &NewKey) -> String {
        let token = self.auth.issue(&key.id, &key.secret, NOW_MS).await.unwrap();
        token.access_token.expose_secret().to_owned()
    }
}

fn settings(folder: &Path) -> AuthSettings {
    AuthSettings {
        keys_folder: folder.join("keys"),
        master_key: None,
        root_key: None,
        token_lifetime_s: LIFETIME_S,
        vended_lifetime_s: LIFETIME_S,
    }
}

async fn start(folder: &Path, db: &Db) -> Auth {
    Auth::open(settings(folder), db.clone(), NOW_MS).await.unwrap()
}

fn refusal<T>(result: Result<T, Error>) -> Unauthenticated {
    match result {
        Err(Error::Unauthenticated(refusal)) => refusal,
        Err(Error::Database(error)) => panic!("{error}"),
        Ok(_) => panic!("accepted"),
    }
}

fn scope() -> Scope {
    Scope {
        warehouse: "lakehouse".into(),
        prefixes: vec!["b/ns/t/".into()],
        access: Access::Read,
        table: uuid::Uuid::from_u128(7),
    }
}

async fn right_secret_gets_a_token_that_verifies(db: Db) {
    let world = World::new(db).await;
    let key = world.key().await;
    let token = world.auth.issue(&key.id, &key.secret, NOW_MS).await.unwrap();
    assert_eq!(token.expires_in_s, LIFETIME_S);
    for _ in 0..2 {
        let caller = world.auth.verify_bearer(token.access_token.expose_secret(), NOW_MS).await.unwrap();
        assert_eq!((&*caller.principal, &*caller.access_key_id), ("ada", &*key.id));
        assert_eq!(caller.authority, Authority::Full);
    }
}

async fn wrong_secrets_and_unknown_ids_are_refused_alike(db: Db) {
    let world = World::new(db).await;
    let key = world.key().await;
    let wrong = SecretString::from("wrong");
    let empty = SecretString::from("");
    for (id, secret) in
        [(&*key.id, &wrong), (&key.id, &empty), ("TWUNKNOWN", &key.secret), ("", &key.secret), ("\0", &empty)]
    {
        assert_eq!(refusal(world.auth.issue(id, secret, NOW_MS).await), Unauthenticated::Invalid, "{id}");
    }
    assert_eq!(refusal(world.auth.verify_bearer("None", NOW_MS).await), Unauthenticated::Invalid);
}

async fn tokens_end_with_their_time(db: Db) {
    let world = World::new(db).await;
    let token = world.token(&world.key().await).await;
    let end_ms = NOW_MS + (LIFETIME_S as i64 + LEEWAY_S) * 1000;
    world.auth.verify_bearer(&token, end_ms - 1).await.unwrap();
    // The first refusal is the cache's, the second the signature check's.
    for _ in 0..2 {
        assert_eq!(refusal(world.auth.verify_bearer(&token, end_ms).await), Unauthenticated::Expired);
    }
    assert_eq!(refusal(world.auth.exchange(&token, end_ms).await), Unauthenticated::Expired);
}

async fn exchange_gives_a_later_token(db: Db) {
    let world = World::new(db).await;
    let token = world.token(&world.key().await).await;
    let later_ms = NOW_MS + 500_000;
    let fresh = world.auth.exchange(&token, later_ms).await.unwrap();
    let after_the_first_ms = NOW_MS + 700_000;
    assert!(world.auth.verify_bearer(&token, after_the_first_ms).await.is_err());
    let caller = world.auth.verify_bearer(fresh.access_token.expose_secret(), after_the_first_ms).await.unwrap();
    assert_eq!(&*caller.principal, "ada");
    assert_eq!(refusal(world.auth.exchange("nonsense", NOW_MS).await), Unauthenticated::Invalid);
}

async fn tokens_and_vended_keys_end_with_their_access_key(db: Db) {
    let world = World::new(db).await;
    let key = world.key().await;
    let token = world.token(&key).await;
    let caller = world.auth.verify_bearer(&token, NOW_MS).await.unwrap();
    let vended = world.auth.vend(&caller, scope(), NOW_MS);
    let session_token = vended.session_token.expose_secret();
    world.auth.signing_identity(&vended.access_key_id, Some(session_token), NOW_MS).await.unwrap();
    world.auth.signing_identity(&key.id, None, NOW_MS).await.unwrap();

    assert_eq!(world.auth.delete_key(&key.id).await.unwrap(), Delete::Done);
    assert_eq!(world.auth.delete_key(&key.id).await.unwrap(), Delete::Missing);

    assert_eq!(refusal(world.auth.verify_bearer(&token, NOW_MS).await), Unauthenticated::Invalid);
    let identity = world.auth.signing_identity(&vended.access_key_id, Some(session_token), NOW_MS).await;
    assert_eq!(refusal(identity), Unauthenticated::Invalid);
    assert_eq!(refusal(world.auth.signing_identity(&key.id, None, NOW_MS).await), Unauthenticated::Invalid);
    assert_eq!(refusal(world.auth.issue(&key.id, &key.secret, NOW_MS).await), Unauthenticated::Invalid);
}

async fn keys_deleted_elsewhere_end_within_the_bound(db: Db) {
    let world = World::new(db).await;
    let key = world.key().await;
    let token = world.token(&key).await;
    assert!(crate::db::keys::delete(&world.db, &key.id).await.unwrap());
    world.auth.verify_bearer(&token, NOW_MS + FRESH_MS - 1).await.unwrap();
    assert_eq!(refusal(world.auth.verify_bearer(&token, NOW_MS + FRESH_MS).await), Unauthenticated::Invalid);
}

async fn vended_keys_reach_their_prefix_until_they_expire(db: Db) {
    let world = World::new(db).await;
    let caller = world.auth.verify_bearer(&world.token(&world.key().await).await, NOW_MS).await.unwrap();
    let vended = world.auth.vend(&caller, scope(), NOW_MS);
    assert_eq!(vended.expires_at_ms, NOW_MS + LIFETIME_S as i64 * 1000);
    let session_token = Some(vended.session_token.expose_secret());
    for _ in 0..2 {
        let identity = world.auth.signing_identity(&vended.access_key_id, session_token, NOW_MS).await.unwrap();
        assert_eq!(identity.secret.expose_secret(), vended.secret_access_key.expose_secret());
        assert_eq!(&*identity.caller.principal, "ada");
        let object = |key| Resource::Object { bucket: "b", key };
        assert!(identity.caller.may(Action::GetObject, object("ns/t/x")));
        assert!(!identity.caller.may(Action::PutObject, object("ns/t/x")));
        assert!(!identity.caller.may(Action::GetObject, object("ns/u/x")));
        assert!(!identity.caller.may(Action::Catalog, Resource::Server));
    }
    let id = &vended.access_key_id;
    assert_eq!(refusal(world.auth.signing_identity("TVOTHER", session_token, NOW_MS).await), Unauthenticated::Invalid);
    assert_eq!(refusal(world.auth.signing_identity(id, None, NOW_MS).await), Unauthenticated::Invalid);
    for _ in 0..2 {
        let identity = world.auth.signing_identity(id, session_token, vended.expires_at_ms).await;
        assert_eq!(refusal(identity), Unauthenticated::Expired);
    }
}

async fn access_key_without_session_token_signs_with_its_secret(db: Db) {
    let world = World::new(db).await;
    let key = world.key().await;
    let identity = world.auth.signing_identity(&key.id, None, NOW_MS).await.unwrap();
    assert_eq!(identity.secret.expose_secret(), key.secret.expose_secret());
    assert_eq!(refusal(world.auth.signing_identity(&key.id, Some("x"), NOW_MS).await), Unauthenticated::Invalid);
}

async fn expired_access_keys_are_refused(db: Db) {
    let world = World::new(db).await;
    let key = world.auth.create_key("ada", Some(NOW_MS + 10), NOW_MS).await.unwrap();
    let token = world.token(&key).await;
    world.auth.verify_bearer(&token, NOW_MS + 9).await.unwrap();
    assert_eq!(refusal(world.auth.verify_bearer(&token, NOW_MS + 10).await), Unauthenticated::Invalid);
}

async fn first_start_makes_a_root_key_that_the_next_start_uses(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let first = start(folder.path(), &db).await;
    let (id, place) = first.root_key();
    assert_eq!(place, &Place::File(folder.path().join("keys/root")));
    let stored = root_key::load(&folder.path().join("keys")).unwrap().unwrap();
    assert_eq!(stored.id, id);
    let second = start(folder.path(), &db).await;
    assert_eq!(second.root_key(), first.root_key());
    second.issue(&stored.id, &stored.secret, NOW_MS).await.unwrap();
    assert_eq!(second.list_keys().await.unwrap().len(), 1);
}

async fn root_key_of_the_settings_takes_the_place_of_another(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let made = start(folder.path(), &db).await.root_key().0.to_owned();
    let given = || Some(NewKey { id: "OPERATOR".into(), secret: "an operator's secret".into() });
    let with_given = || AuthSettings { root_key: given(), ..settings(folder.path()) };
    let auth = Auth::open(with_given(), db.clone(), NOW_MS).await.unwrap();
    assert_eq!(auth.root_key(), ("OPERATOR", &Place::Settings));
    let token = auth.issue("OPERATOR", &"an operator's secret".into(), NOW_MS).await.unwrap();
    let caller = auth.verify_bearer(token.access_token.expose_secret(), NOW_MS).await.unwrap();
    assert_eq!(&*caller.principal, root_key::PRINCIPAL);
    let ids: Vec<String> = auth.list_keys().await.unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(ids, ["OPERATOR"], "{made} is gone");

    let changed = Some(NewKey { id: "OPERATOR".into(), secret: "another secret".into() });
    let changed = AuthSettings { root_key: changed, ..settings(folder.path()) };
    let auth = Auth::open(changed, db, NOW_MS).await.unwrap();
    assert!(auth.issue("OPERATOR", &"an operator's secret".into(), NOW_MS).await.is_err());
    auth.issue("OPERATOR", &"another secret".into(), NOW_MS).await.unwrap();
}

async fn replica_with_another_master_key_is_refused(db: Db) {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    start(one.path(), &db).await;
    let error = Auth::open(settings(other.path()), db, NOW_MS).await.err().unwrap();
    assert!(matches!(error, StartError::MasterKeyMismatch), "{error}");
}

async fn replicas_with_one_master_key_know_each_others_tokens(db: Db) {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shared =
        |folder: &Path| AuthSettings { master_key: MasterKey::parse(&"07".repeat(32).into()), ..settings(folder) };
    let first = Auth::open(shared(one.path()), db.clone(), NOW_MS).await.unwrap();
    let second = Auth::open(shared(other.path()), db, NOW_MS).await.unwrap();
    assert_eq!(second.root_key(), (first.root_key().0, &Place::Elsewhere));
    let key = first.create_key("ada", None, NOW_MS).await.unwrap();
    let token = first.issue(&key.id, &key.secret, NOW_MS).await.unwrap();
    let caller = second.verify_bearer(token.access_token.expose_secret(), NOW_MS).await.unwrap();
    let vended = first.vend(&caller, scope(), NOW_MS);
    let session_token = Some(vended.session_token.expose_secret());
    second.signing_identity(&vended.access_key_id, session_token, NOW_MS).await.unwrap();
}

async fn root_key_cannot_be_deleted(db: Db) {
    let world = World::new(db).await;
    let root = world.auth.root_key().0.to_owned();
    assert_eq!(world.auth.delete_key(&root).await.unwrap(), Delete::Root);
}
