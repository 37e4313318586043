//! `babysit cron`: the line, and a crontab of which nothing but that line changes.

use crate::lab::{Lab, has};

/// Keeps the crontab in a file beside it, as crontab(1) does elsewhere.
const CRONTAB: &str = r#"
table="$(dirname "$0")/table"
case $1 in
  -l) [ -f "$table" ] && exec cat "$table"
      echo "no crontab for anna" >&2; exit 1 ;;
  -) cat >"$table.new" && mv "$table.new" "$table" ;;
  *) exit 2 ;;
esac
"#;

impl Lab {
    fn with_crontab(table: Option<&str>) -> Lab {
        let lab = Lab::new();
        lab.program("crontab", CRONTAB);
        if let Some(table) = table {
            lab.write("bin/table", table);
        }
        lab
    }

    fn cron(&self, words: &[&str], code: i32) -> (String, String) {
        let path = format!("{}:/usr/bin:/bin", self.at("bin").display());
        let words = [&["cron"], words].concat();
        let mut command = self.command(&words);
        command.env("PATH", path).env("HOME", self.dir.path());
        let output = command.output().expect("it ran");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{out}{err}");
        (out, err)
    }
}

#[test]
fn the_printed_line_ticks_under_crons_few_variables() {
    let lab = Lab::new();
    let line = lab.run(&["cron"], 0).out;
    let (schedule, command) = line.split_at("* * * * * ".len());
    assert_eq!(schedule, "* * * * * ");
    // As cron does it: another folder, hardly a variable, sh.
    let cron = |command: &str| {
        std::process::Command::new("/bin/sh")
            .args(["-c", command])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LOGNAME", "anna")
            .current_dir("/")
            .output()
            .expect("sh is there")
    };
    let output = cron(command);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    has(&String::from_utf8_lossy(&output.stdout), "submitted as job 101");
    assert_eq!(lab.json(&["status"], 0)["last_tick"]["outcome"], "ok");

    let line = lab.run(&["cron", "--log", "a log", "--every", "1h"], 0).out;
    let output = cron(line.strip_prefix("0 * * * * ").expect("each hour"));
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
    assert!(lab.at("a log").exists());
    assert_eq!(lab.json(&["doctor"], 1)["crontab"][0], lab.run(&["cron"], 0).out.trim_end());
}

#[test]
fn install_replaces_our_line_and_nothing_else() {
    let lab = Lab::with_crontab(None);
    let (out, _) = lab.cron(&["--install"], 0);
    has(&out, "installed in your crontab");
    let line = lab.read("bin/table");
    assert_eq!(line.lines().count(), 1);
    has(&lab.cron(&["--install"], 0).0, "already");
    assert_eq!(lab.read("bin/table"), line);

    let mine = "MAILTO=anna\n# mine: 100\\%\n5 4 * * * /home/anna/backup\n";
    let other = "* * * * * /b/babysit --config /other/shards.toml tick # babysit cron: other\n";
    lab.write("bin/table", &format!("{mine}{line}{other}"));
    let (out, _) = lab.cron(&["--install", "--every", "5m"], 0);
    has(&out, "in the place of:\n    * * * * * ");
    let fresh = line.replacen("* * * * *", "*/5 * * * *", 1);
    assert_eq!(lab.read("bin/table"), format!("{mine}{fresh}{other}"));
    has(&lab.cron(&["--remove"], 0).0, "taken out");
    assert_eq!(lab.read("bin/table"), format!("{mine}{other}"));
    has(&lab.cron(&["--remove"], 0).0, "has no line");

    lab.write("bin/table", "* * * * * $HOME/bin/babysit --config here/shards.toml tick\n");
    has(&lab.cron(&["--install"], 0).1, "ticks too");
    assert_eq!(lab.read("bin/table").lines().count(), 2);
}

#[test]
fn a_crontab_that_cannot_be_read_is_never_replaced() {
    let lab = Lab::with_crontab(Some("5 4 * * * mine\n"));
    for (script, says) in [
        ("echo 'You (anna) are not allowed to use this program (crontab)' >&2; exit 1", "allowed"),
        (
            "echo 'crontab: cannot open /var/spool/cron: Input/output error' >&2; exit 1",
            "cannot open",
        ),
        // Half of it was read: what is missing would be lost.
        ("echo '1 2 * * * half'; echo 'no crontab for you: I/O error' >&2; exit 1", "no crontab"),
    ] {
        let writes = r#"[ "$1" = - ] && exec cat >"$(dirname "$0")/table""#;
        lab.program("crontab", &format!("{writes}\n{script}"));
        let (_, err) = lab.cron(&["--install"], 1);
        has(&err, says);
        has(&err, "babysit loop --until-done");
        assert_eq!(lab.read("bin/table"), "5 4 * * * mine\n");
    }
    // It says that it did, and did not.
    lab.program("crontab", "[ \"$1\" = -l ] && exec echo '5 4 * * * mine'; cat >/dev/null");
    has(&lab.cron(&["--install"], 1).1, "does not show them");
}

/// Of programs that read the crontab and write it back, each as a whole, the later one undoes the
/// earlier: babysits take turns.
#[test]
fn of_two_babysits_that_change_the_crontab_at_once_none_undoes_the_other() {
    let lab = Lab::with_crontab(Some("5 4 * * * mine\n"));
    let slow = CRONTAB.replace("exec cat \"$table\"", "cat \"$table\" && sleep 0.7 && exit 0");
    assert_ne!(slow, CRONTAB);
    lab.program("crontab", &slow);
    let other = lab.read("shards.toml").replace("oracle-plan", "other");
    lab.write("other.toml", &other);
    let others = &["--config", "other.toml"];
    let both = |word: &str| {
        std::thread::scope(|scope| {
            scope.spawn(|| lab.cron(&[word], 0));
            scope.spawn(|| lab.cron(&[&[word], &others[..]].concat(), 0));
        });
        lab.read("bin/table")
    };
    let table = both("--install");
    for end in ["mine\n", "# babysit cron: oracle-plan\n", "# babysit cron: other\n"] {
        has(&table, end);
    }
    assert_eq!(table.lines().count(), 3);
    assert_eq!(both("--remove"), "5 4 * * * mine\n");
}

#[test]
fn another_program_that_writes_the_crontab_meanwhile_is_seen() {
    let lab = Lab::with_crontab(Some("5 4 * * * mine\n"));
    // Somebody's edit of the crontab as it was lands on top of ours, once: it is done again.
    let once = r#"[ "$1" = - ] && [ ! -f "$(dirname "$0")/once" ] && cat >"$(dirname "$0")/once" && {
      echo '1 1 * * * new' >>"$(dirname "$0")/table"; exit 0; }"#;
    lab.program("crontab", &format!("{once}\n{CRONTAB}"));
    has(&lab.cron(&["--install"], 0).0, "installed in your crontab");
    let table = lab.read("bin/table");
    assert!(table.starts_with("5 4 * * * mine\n1 1 * * * new\n* * * * * "), "{table}");
    assert_eq!(table.lines().count(), 3);

    // Or it takes lines out that we have just written back.
    lab.cron(&["--remove"], 0);
    let drops = r#"[ "$1" = - ] && { grep -v mine >"$(dirname "$0")/table"; exit 0; }"#;
    lab.program("crontab", &format!("{drops}\n{CRONTAB}"));
    let (_, err) = lab.cron(&["--install"], 1);
    has(&err, "has lost these lines:\n    5 4 * * * mine");
    has(&err, "crontab -e");
}

#[test]
fn what_cron_cannot_do_is_said() {
    let lab = Lab::new();
    has(&lab.run(&["cron", "--every", "7m"], 2).err, "whole minutes that divide an hour");
    has(&lab.run(&["cron", "--every", "30s"], 2).err, "whole minutes that divide an hour");
    lab.run(&["cron", "--install", "--remove"], 2);
    if !std::path::Path::new("/usr/bin/crontab").exists() {
        has(&lab.run(&["cron", "--install"], 1).err, "no program crontab");
    }
}
