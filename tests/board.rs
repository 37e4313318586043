//! `babysit status --watch`: keys in, the lines of a screen of a fixed size out.

mod common;

use babysit::model::id::ShardId;
use babysit::model::policy::Policy;
use babysit::model::units::Secs;
use babysit::output::board::{Board, Key};
use babysit::output::spark::Point;
use babysit::output::view::Status;
use common::{NOW, afternoon, fresh, look, policy, within};
use expect_test::expect;

/// A board, and the screen that it is drawn on.
struct Desk {
    board: Board,
    status: Status,
    width: usize,
    height: usize,
}

impl Desk {
    fn of(status: Status, width: usize, height: usize) -> Desk {
        Desk { board: Board::default(), status, width, height }
    }

    /// Twelve shards in two families.
    fn afternoon(width: usize, height: usize) -> Desk {
        let (policy, state) = afternoon();
        let status = common::status(&policy, &state);
        Desk::of(status, width, height)
    }

    fn press(&mut self, keys: &[Key]) -> Vec<String> {
        keys.iter().for_each(|key| self.board.key(*key, &self.status));
        self.lines()
    }

    /// The whole screen; whatever was pressed, it is filled and nothing reaches beyond it.
    fn lines(&mut self) -> Vec<String> {
        let lines = self.board.render(&self.status, &look(Some(self.width)), self.height);
        assert_eq!(lines.len(), self.height);
        within(self.width, lines.iter().map(String::as_str));
        lines
    }

    fn picture(&mut self) -> String {
        self.lines().iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

fn at_cursor(lines: &[String]) -> &str {
    let line = lines.iter().find(|line| line.starts_with('>'));
    line.unwrap_or_else(|| panic!("no cursor in {lines:#?}"))
}

fn typed(text: &str) -> Vec<Key> {
    [Key::Filter].into_iter().chain(text.chars().map(Key::Type)).collect()
}

#[test]
fn a_board_of_80_columns() {
    expect![[r#"
        oracle-plan   last tick 40s ago
          SHARD      STATE    QOS   GPU  ROWS   % RATE  COST/CAP    ETA TRY WHY
        >- restore: 8 shards, 2 need a person, 129 of 495 rows, 2 running, 3 pending, 1…
          restore/s5 over-cap -       1 58/64  90    - !40.10/40      -   1 cap reached
          restore/s6 held     -       1 12/64  18    -   3.24/40      -   4 3 failures
          restore/s0 running  own     1  8/64  12  2.3   2.16/40     1d   1 on gpu07
          restore/s3 running  own     1 36/64  56  2.3 !25.20/40 12h 8m   1 on gpu07
          restore/s1 pending  own     1  0/64   0    -   0.00/40  1d 5h   1 parked 1/4
          restore/s2 pending  own     1 10/64  15    -   2.70/40 1d 11h   1 parked 2/4
          restore/s4 pending  extra   1  0/47   0    -   0.00/40 1d 20h   1 any GPU 3/4
          restore/s7 backoff  -       1  5/64   7    -   1.35/40  1d 6h   1 retry in 1m
         - find: 4 shards, 130 of 176 rows, 2 running, 2 done
          find/s1    running  own     1 30/44  68  6.7   2.40/25  2h 6m   1 on gpu07
          find/s3    running  extra   1 12/44  27  6.7   0.96/25 4h 48m   3 on gpu07
          find/s0    done     -       1 44/44 100    -   3.52/25      -   1
          find/s2    done     -       1 44/44 100    -   3.52/25      -   1




        shards  12 shards: 2 done, 4 running, 3 pending, 1 waiting, 2 need a person
        rows    412 left of 671, 18 rows/h, ETA 1d 20h (2 shards not counted)
        cost    $85.15 spent, $236.57 projected, ceiling $420
        q quit  up/down move  Enter open/close  a all  / filter  g/G ends
    "#]]
    .assert_eq(&Desk::afternoon(80, 24).picture());
}

#[test]
fn a_narrow_board_and_a_wide_one_are_filled_and_no_more() {
    for width in [40, 50, 60, 80, 100, 120, 200] {
        for height in [1, 5, 10, 24, 60] {
            Desk::afternoon(width, height).press(&[Key::Down, Key::Toggle, Key::Last]);
        }
    }
    expect![[r#"
        oracle-plan   last tick 40s ago
          SHARD      STATE     ROWS    ETA WHY
        >- restore: 8 shards, 2 need a person, 129 of 495…
          restore/s5 over-cap 58/64      - cap reached
          restore/s6 held     12/64      - 3 failures
          restore/s0 running   8/64     1d on gpu07
          restore/s3 running  36/64 12h 8m on gpu07
          restore/s1 pending   0/64  1d 5h parked 1/4
          restore/s2 pending  10/64 1d 11h parked 2/4
          restore/s4 pending   0/47 1d 20h any GPU 3/4
          restore/s7 backoff   5/64  1d 6h retry in 1m
         - find: 4 shards, 130 of 176 rows, 2 running, 2…

        shards  12 shards: 2 done, 4 running, 3 pending, 1
                waiting, 2 need a person
        rows    412 left of 671, 18 rows/h, ETA 1d 20h (2
                shards not counted)
        cost    $85.15 spent, $236.57 projected, ceiling
                $420
        q quit  up/down move  Enter open/close  a all  /…
    "#]]
    .assert_eq(&Desk::afternoon(50, 20).picture());
}

#[test]
fn keys_move_open_and_close() {
    use Key::{Down, First, Last, PageDown, PageUp, Toggle, ToggleAll, Up};
    let mut desk = Desk::afternoon(100, 40);
    assert!(at_cursor(&desk.lines()).starts_with(">- restore: 8 shards, 2 need a person"));
    assert!(at_cursor(&desk.press(&[Down])).starts_with("> restore/s5 over-cap"));
    assert!(at_cursor(&desk.press(&[Up, Up, Up])).starts_with(">- restore"));
    assert!(at_cursor(&desk.press(&[Last])).starts_with("> find/s2"));
    // Closed from one of its shards; the cursor stays on the screen.
    let lines = desk.press(&[Toggle]);
    assert!(lines.iter().any(|line| line.contains("+ find: 4 shards")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("find/s2")));
    assert!(at_cursor(&desk.press(&[Last])).starts_with(">+ find"));
    // All of them: closed where one is open, else opened.
    let lines = desk.press(&[ToggleAll]);
    assert!(lines.iter().any(|line| line.contains("+ restore")), "{lines:#?}");
    let lines = desk.press(&[ToggleAll, First]);
    assert!(lines.iter().any(|line| line.contains("find/s2")), "{lines:#?}");
    // A screen that is lower than the list: pages, and back.
    desk.height = 12;
    let first = desk.lines();
    assert_ne!(desk.press(&[PageDown, PageDown]), first);
    assert_eq!(desk.press(&[PageUp, PageUp, PageUp]), first);
}

#[test]
fn a_filter_is_typed_kept_and_dropped() {
    let mut desk = Desk::afternoon(100, 30);
    let all = desk.lines();
    let lines = desk.press(&typed("find/s1"));
    assert!(lines.last().is_some_and(|line| line.starts_with("filter: find/s1_")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("restore")), "{lines:#?}");
    // `q` and `a` are letters while one types.
    let lines = desk.press(&[Key::Erase, Key::Type('q')]);
    assert!(lines.iter().any(|line| line == "no shard matches"), "{lines:#?}");
    let lines = desk.press(&[Key::Erase, Key::Toggle]);
    assert!(!desk.board.typing);
    assert!(lines.iter().any(|line| line.contains("find/s3 running")), "{lines:#?}");
    assert_eq!(desk.press(&[Key::Escape]), all);
    // By its state.
    let lines = desk.press(&typed("over-cap"));
    assert!(lines.iter().any(|line| line.contains("restore/s5 over-cap")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("find")), "{lines:#?}");
    assert_eq!(desk.press(&[Key::Escape]), all);
}

/// A day of rows, and the cursor on a shard that needs a person.
#[test]
fn the_picture_in_the_readme_is_what_the_board_shows() {
    let mut desk = Desk::afternoon(88, 19);
    let rows = [0, 14, 30, 41, 60, 72, 80, 84, 90, 118, 139, 170, 199, 230, 259];
    let point =
        |(i, rows): (usize, &u64)| Point { at: NOW - Secs::hours(14 - i as i64), rows: *rows };
    desk.status.history = rows.iter().enumerate().map(point).collect();
    desk.press(&[Key::Last, Key::Toggle, Key::First, Key::Down]);
    let readme = include_str!("../README.md");
    let picture = readme.split("```text\n").nth(2).and_then(|rest| rest.split("```").next());
    let shown = desk.picture();
    assert_eq!(picture, Some(shown.as_str()), "put this into README.md:\n{shown}");
}

/// Ten thousand shards in two families.
fn many() -> Status {
    let few = policy();
    let shard = |i: u32| {
        let mut shard = few.shards[if i < 4000 { 0 } else { 4 }].clone();
        shard.id = ShardId::new(&shard.id.family, &format!("s{i}"));
        shard.index = i;
        shard
    };
    let policy = Policy { shards: (0..10_000).map(shard).collect(), ..few };
    let mut state = fresh(&policy);
    state.shards[9_999].over_cap = Some(babysit::model::state::OverCap {
        spent: common::dollars(41.0),
        cap: common::dollars(40.0),
        at: NOW,
    });
    common::status(&policy, &state)
}

#[test]
fn ten_thousand_shards_begin_closed_and_a_screen_of_them_is_shown() {
    let mut desk = Desk::of(many(), 120, 30);
    expect![[r#"
        oracle-plan   no tick yet: run `babysit tick` or `babysit cron --install`

        >+ restore: 6000 shards, 1 needs a person, 0 of 384000 rows, 5999 waiting
         + find: 4000 shards, 0 of 176000 rows, 4000 waiting






















        shards  10000 shards: 9999 waiting, 1 needs a person
        rows    560000 left of 560000, 0 rows/h, ETA ~1062d 12h (1 shard not counted)
        cost    $0.00 spent, $0.00 projected, ceiling $340000
        q quit  up/down move  Enter open/close  a all  / filter  g/G ends
    "#]]
    .assert_eq(&desk.picture());
    // What needs a person is the first in its family.
    let lines = desk.press(&[Key::First, Key::Toggle, Key::Down]);
    assert!(at_cursor(&lines).starts_with("> restore/s9999 over-cap"), "{lines:#?}");
    let lines = desk.press(&[Key::Last]);
    assert!(at_cursor(&lines).contains("find"), "{lines:#?}");
    let lines = desk.press(&[Key::Up]);
    assert!(at_cursor(&lines).starts_with("> restore/s9998 waiting"), "{lines:#?}");
    // Few that are found are shown, though their family was closed; with none sought it is as at first.
    desk.press(&[Key::ToggleAll]);
    let lines = desk.press(&typed("s500"));
    assert!(lines.iter().any(|line| line.contains("restore/s5009")), "{lines:#?}");
    let lines = desk.press(&[Key::Escape]);
    assert!(lines.iter().any(|line| line.contains("+ restore")), "{lines:#?}");
}

/// A status that changes under the cursor: it stays on the screen.
#[test]
fn shards_that_go_take_no_cursor_with_them() {
    let mut desk = Desk::of(many(), 80, 24);
    desk.press(&[Key::ToggleAll, Key::Last]);
    desk.status.shards.truncate(3);
    let lines = desk.lines();
    assert!(at_cursor(&lines).contains("find/s2"), "{lines:#?}");
    desk.status.shards.clear();
    assert!(desk.lines().iter().any(|line| line == "no shard matches"));
}
