use super::*;

fn parsed(arguments: &[&str]) -> Command {
    let matches = with_fitting_help(Command::command()).try_get_matches_from(arguments).unwrap();
    Command::from_arg_matches(&matches).unwrap()
}

fn help(command: &[&str]) -> String {
    let arguments = ["tidewater"].iter().chain(command).chain(&["--help"]);
    with_fitting_help(Command::command()).try_get_matches_from(arguments).unwrap_err().to_string()
}

#[test]
fn help_shows_the_settings_a_command_uses() {
    for (command, shown, hidden) in [
        (&["connect"][..], &["--data", "--warehouse", "--s3-url"][..], &["--page-size-max", "--database-url"][..]),
        (&["keys"], &["--data", "--catalog-addr", "--credential"], &["--page-size-max", "--warehouse"]),
        (&["keys", "delete"], &["--data", "--credential", "The key's id"], &["--page-size-max", "--s3-url"]),
        (&["store"], &["--data", "verify", "stats", "damages"], &["--catalog-addr"]),
        (&["store", "verify"], &["--data"], &["--catalog-addr"]),
        (&["health"], &["--data", "--catalog-addr"], &["--log-format", "--warehouse"]),
        (&["migrate"], &["--data", "--database-url"], &["--page-size-max", "--catalog-addr"]),
        (&["openapi"], &[], &["--data", "Settings:"]),
        (&["serve"], &["--data", "--page-size-max"], &[]),
        (&[], &["--data", "--page-size-max"], &[]),
    ] {
        let help = help(command);
        assert!(shown.iter().all(|word| help.contains(word)), "{command:?} lacks one of {shown:?}:\n{help}");
        assert!(!hidden.iter().any(|word| help.contains(word)), "{command:?} has one of {hidden:?}:\n{help}");
    }
}

#[test]
fn every_command_takes_every_setting_before_and_after_its_name() {
    for command in ["serve", "migrate", "openapi", "health"] {
        for arguments in
            [["tidewater", command, "--page-size-max", "7"], ["tidewater", "--page-size-max", "7", command]]
        {
            let settings = Settings::from_sources(&parsed(&arguments).flags, []).unwrap();
            assert_eq!(settings.page_size_max, 7, "{arguments:?}");
        }
    }
    let nested = parsed(&["tidewater", "keys", "list", "--region", "eu-1"]);
    assert_eq!(Settings::from_sources(&nested.flags, []).unwrap().region, "eu-1");
}

#[test]
fn keys_takes_a_credential_before_and_after_its_action() {
    for arguments in [
        ["tidewater", "keys", "--credential", "TWID:secret", "list"],
        ["tidewater", "keys", "list", "--credential", "TWID:secret"],
    ] {
        let Some(Action::Keys { credential, .. }) = parsed(&arguments).action else { panic!("another command") };
        assert_eq!(credential.credential.map(|credential| credential.joined()).as_deref(), Some("TWID:secret"));
    }
}
