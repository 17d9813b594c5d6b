use super::*;
use clap::{Args, Command, FromArgMatches};

fn flags(arguments: &[&str]) -> Flags {
    let command = Flags::augment_args(Command::new("tidewater").no_binary_name(true));
    Flags::from_arg_matches(&command.try_get_matches_from(arguments).unwrap()).unwrap()
}

fn load(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Settings, Error> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::from_sources(&flags(arguments), variables)
}

fn complaint(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    load(arguments, variables).unwrap_err().to_string()
}

fn toml(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tidewater.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn defaults_are_within_bounds_and_all_read() {
    let mut values = Values::new(BTreeMap::new());
    let settings = Settings::from_values(&mut values).unwrap();
    assert_eq!(values.left().collect::<Vec<_>>(), Vec::<&str>::new());
    assert_eq!(settings.catalog_url, "http://127.0.0.1:8181");
    assert_eq!(settings.s3_url, "http://127.0.0.1:9000");
    assert_eq!(settings.body_bytes_max, 64 << 20);
}

#[test]
fn flag_beats_variable_beats_file_beats_default() {
    let (_folder, path) = toml("page_size_max = 10\nregion = 'eu-1'\nwarehouse = 'w'");
    let variables =
        [("TIDEWATER_CONFIG", path.as_str()), ("TIDEWATER_PAGE_SIZE_MAX", "20"), ("TIDEWATER_REGION", "eu-2")];
    let settings = load(&["--page-size-max", "30"], &variables).unwrap();
    assert_eq!(settings.page_size_max, 30);
    assert_eq!(settings.region, "eu-2");
    assert_eq!(settings.warehouse, "w");
    assert_eq!(settings.bucket.as_str(), "lakehouse-warehouse");
}

#[test]
fn flag_config_beats_the_variable() {
    let (_one, one) = toml("region = 'one'");
    let (_two, two) = toml("region = 'two'");
    assert_eq!(load(&["--config", &one], &[("TIDEWATER_CONFIG", &two)]).unwrap().region, "one");
}

#[test]
fn unknown_names_stop_the_start() {
    let complaint_of_variable = complaint(&[], &[("TIDEWATER_PAGE_SIZE_MAXX", "1")]);
    assert_eq!(
        complaint_of_variable,
        "unknown setting page_size_maxx (variable TIDEWATER_PAGE_SIZE_MAXX); did you mean page_size_max?"
    );
    let (_folder, path) = toml("colour = 'blue'");
    assert_eq!(complaint(&["--config", &path], &[]), format!("unknown setting colour (file {path})"));
    let (_folder, path) = toml("[catalog]\naddr = '127.0.0.1:1'");
    assert_eq!(complaint(&["--config", &path], &[]), format!("unknown setting catalog (file {path})"));
}

#[test]
fn foreign_test_and_empty_variables_are_ignored() {
    load(&[], &[("HOME", "/root"), ("TIDEWATER_TEST_POSTGRES_URL", "x"), ("TIDEWATER_DATABASE_URL", "")]).unwrap();
}

#[test]
fn bad_values_name_setting_source_and_bound() {
    assert_eq!(
        complaint(&["--page-size-max", "0"], &[]),
        "bad setting page_size_max (flag --page-size-max) is \"0\": must be 1 to 10000"
    );
    assert_eq!(
        complaint(&[], &[("TIDEWATER_BODY_BYTES_MAX", "2GiB")]),
        "bad setting body_bytes_max (variable TIDEWATER_BODY_BYTES_MAX) is \"2GiB\": must be 64KiB to 1GiB"
    );
    let (_folder, path) = toml("catalog_addr = ['a', 'b']");
    assert_eq!(
        complaint(&["--config", &path], &[]),
        format!("bad setting catalog_addr (file {path}): must be HOST:PORT")
    );
    for (name, value) in [
        ("CATALOG_ADDR", "8181"),
        ("CATALOG_ADDR", "127.0.0.1:70000"),
        ("S3_URL", "ftp://host"),
        ("S3_URL", "http://user@host"),
        ("REGION", "a\nb"),
        ("LOG_FORMAT", "xml"),
        ("LOG", "tidewater=loud"),
        ("TOKEN_LIFETIME_S", "-1"),
        ("TOKEN_LIFETIME_S", "1.5"),
        ("BUCKET", "ab"),
        ("DISK_RESERVE_BYTES", "99999999999GiB"),
        ("METADATA_CACHE_BYTES", "18446744073709551616"),
    ] {
        let text = complaint(&[], &[(&format!("TIDEWATER_{name}"), value)]);
        assert!(text.contains(&name.to_ascii_lowercase()), "{text}");
    }
}

#[test]
fn names_are_refused_with_their_rule() {
    for (name, value) in
        [("bucket", "My_Bucket"), ("bucket", "192.168.0.1"), ("bucket", "a..b"), ("bucket", "x-s3alias")]
    {
        let text = complaint(&[], &[(&format!("TIDEWATER_{}", name.to_ascii_uppercase()), value)]);
        assert!(text.contains("variable TIDEWATER_BUCKET") && text.contains("lower-case letters"), "{text}");
    }
    let (_folder, path) = toml("bucket = 'Lake'");
    assert!(complaint(&["--config", &path], &[]).contains(&format!("bucket (file {path}) is \"Lake\"")));
    for name in [".", "..", "a\nb", &"x".repeat(129)] {
        let text = complaint(&["--warehouse", name], &[]);
        assert!(text.contains("warehouse (flag --warehouse)") && text.contains("1 to 128 characters"), "{text}");
    }
    for name in ["...", "a.b", "w h/ü", &"x".repeat(128)] {
        assert_eq!(load(&["--warehouse", name], &[]).unwrap().warehouse, *name);
    }
}

#[test]
fn two_listeners_on_one_address_are_named() {
    assert_eq!(
        complaint(&["--catalog-addr", "127.0.0.1:9000"], &[]),
        "settings catalog_addr (flag --catalog-addr) and s3_addr (default) name the same address, 127.0.0.1:9000: \
         each listener needs one of its own"
    );
    for (s3, metrics) in [("0.0.0.0:8181", "127.0.0.1:1"), ("[::]:8181", "127.0.0.1:1"), ("127.0.0.1:1", "127.0.0.1:1")]
    {
        let text = complaint(&["--s3-addr", s3], &[("TIDEWATER_METRICS_ADDR", metrics)]);
        assert!(text.contains("the same address"), "{text}");
    }
    for (catalog, s3) in [("127.0.0.1:0", "127.0.0.1:0"), ("127.0.0.1:1", "127.0.0.2:1"), ("[::1]:1", "0.0.0.0:1")] {
        load(&["--catalog-addr", catalog, "--s3-addr", s3], &[]).unwrap();
    }
}

#[test]
fn the_running_servers_note_stands_below_all_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let mut server = Settings::on_free_ports(folder.path());
    let bound: SocketAddr = "127.0.0.1:4242".parse().unwrap();
    (server.warehouse, server.s3_url) = ("quo\"ted".to_owned(), "https://s3.example".to_owned());
    let server = server.listening_on(bound, "0.0.0.0:4243".parse().unwrap());
    let found = |arguments: &[&str]| {
        let arguments = [&["--data", data], arguments].concat();
        Settings::load_with_running(&flags(&arguments)).unwrap()
    };
    running::announce(&server).unwrap();
    let told = |settings: Settings| (settings.catalog_url, settings.s3_url, settings.warehouse);
    let (running_url, s3_url) = ("http://127.0.0.1:4242".to_owned(), "https://s3.example".to_owned());
    assert_eq!(told(found(&[])), (running_url, s3_url.clone(), "quo\"ted".to_owned()));
    let elsewhere = found(&["--catalog-addr", "127.0.0.1:1", "--warehouse", "w"]);
    assert_eq!(told(elsewhere), ("http://127.0.0.1:1".to_owned(), s3_url, "w".to_owned()));

    running::withdraw(&server);
    assert_eq!(found(&[]).catalog_url, "http://127.0.0.1:8181");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn messages_never_show_secrets() {
    for (name, value) in
        [("MASTER_KEY", "hushhush"), ("ROOT_SECRET_ACCESS_KEY", "hushhush"), ("DATABASE_URL", "mysql://u:hushhush@h/d")]
    {
        let text = complaint(&[], &[(&format!("TIDEWATER_{name}"), value)]);
        assert!(text.contains(&name.to_ascii_lowercase()) && !text.contains("hushhush"), "{text}");
    }
    let (_folder, path) = toml("region = 'x'\nroot_secret_access_key = hushhush");
    let text = complaint(&["--config", &path], &[]);
    assert!(text.contains("line 2") && !text.contains("hushhush"), "{text}");
    let secrets = [
        ("TIDEWATER_ROOT_ACCESS_KEY_ID", "TWROOT"),
        ("TIDEWATER_ROOT_SECRET_ACCESS_KEY", "hushhushhushhush"),
        ("TIDEWATER_DATABASE_URL", "postgres://u:hushhush@h/d"),
    ];
    let shown = format!("{:?}", load(&[], &secrets).unwrap());
    assert!(!shown.contains("hushhush"), "{shown}");
}

#[test]
fn root_key_comes_whole_or_not_at_all() {
    let text = complaint(&[], &[("TIDEWATER_ROOT_ACCESS_KEY_ID", "TWROOT")]);
    assert!(text.contains("root_secret_access_key"), "{text}");
}

#[test]
fn addresses_may_be_names_and_wildcards_are_told_as_loopback() {
    let settings = load(&["--catalog-addr", "localhost:1", "--s3-addr", "0.0.0.0:2"], &[]).unwrap();
    assert!(settings.catalog_addr.ip().is_loopback());
    assert_eq!(settings.s3_url, "http://127.0.0.1:2");
}

#[test]
fn told_urls_follow_the_bound_port_unless_given() {
    let bound: SocketAddr = "127.0.0.1:4242".parse().unwrap();
    let settings = load(&["--catalog-addr", "127.0.0.1:0", "--s3-url", "https://s3.example/"], &[]).unwrap();
    let settings = settings.listening_on(bound, bound);
    assert_eq!(settings.catalog_url, "http://127.0.0.1:4242");
    assert_eq!(settings.s3_url, "https://s3.example");
}
