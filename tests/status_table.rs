//! What `babysit status` looks like, kept as pictures.

mod common;

use babysit::model::state::{State, TickOutcome, TickRecord};
use babysit::model::units::Secs;
use babysit::output::paint::Paint;
use babysit::output::table::{Look, render};
use common::{NOW, afternoon, fresh, look, policy, within};
use expect_test::{Expect, expect};

fn picture(state: &State, width: Option<usize>) -> String {
    let policy = policy();
    let status = common::status(&policy, state);
    render(&status, &look(width))
}

fn check(state: &State, width: usize, want: Expect) {
    let text = picture(state, Some(width));
    within(width, text.lines().filter(|line| !line.starts_with("    ")));
    want.assert_eq(&text);
}

#[test]
fn twelve_shards_at_80_columns() {
    let (_, state) = afternoon();
    check(
        &state,
        80,
        expect![[r#"
            oracle-plan   last tick 40s ago

            SHARD      STATE    QOS   GPU  ROWS   % RATE  COST/CAP    ETA TRY WHY
            restore/s5 over-cap -       1 58/64  90    - !40.10/40      -   1 cap reached
            restore/s6 held     -       1 12/64  18    -   3.24/40      -   4 3 failures
            find/s1    running  own     1 30/44  68  6.7   2.40/25  2h 6m   1 on gpu07
            find/s3    running  extra   1 12/44  27  6.7   0.96/25 4h 48m   3 on gpu07
            restore/s0 running  own     1  8/64  12  2.3   2.16/40     1d   1 on gpu07
            restore/s3 running  own     1 36/64  56  2.3 !25.20/40 12h 8m   1 on gpu07
            restore/s1 pending  own     1  0/64   0    -   0.00/40  1d 5h   1 parked 1/4
            restore/s2 pending  own     1 10/64  15    -   2.70/40 1d 11h   1 parked 2/4
            restore/s4 pending  extra   1  0/47   0    -   0.00/40 1d 20h   1 any GPU 3/4
            restore/s7 backoff  -       1  5/64   7    -   1.35/40  1d 6h   1 retry in 1m
            find/s0    done     -       1 44/44 100    -   3.52/25      -   1
            find/s2    done     -       1 44/44 100    -   3.52/25      -   1

            shards  12 shards: 2 done, 4 running, 3 pending, 1 waiting, 2 need a person
            rows    412 left of 671, 18 rows/h, ETA 1d 20h (2 shards not counted)
            cost    $85.15 spent, $236.57 projected, ceiling $420

            needs a person
              restore/s6: It failed 3 times in a row without a new row; last line of its
              log: KeyError: 'plan'
                babysit log restore/s6      # what happened
                babysit retry restore/s6    # once it is put right
              restore/s5: Its cost cap is reached: $40.10 of $40 spent; only a raised cap
              lets it go on.
                babysit cap set restore/s5 54

            worth a look
              restore/s3: Will pass its cap before its last row: projected $44.80 ($0.700 a
              row), cap $40.
                babysit cap set restore/s3 54
        "#]],
    );
}

#[test]
fn twelve_shards_at_120_columns() {
    let (_, state) = afternoon();
    check(
        &state,
        120,
        expect![[r#"
            oracle-plan   last tick 40s ago

            SHARD      STATE    QOS   GPU  ROWS   % RATE  COST/CAP    ETA TRY WHY
            restore/s5 over-cap -       1 58/64  90    - !40.10/40      -   1 Its cost cap is reached
            restore/s6 held     -       1 12/64  18    -   3.24/40      -   4 3 failures
            find/s1    running  own     1 30/44  68  6.7   2.40/25  2h 6m   1 on gpu07
            find/s3    running  extra   1 12/44  27  6.7   0.96/25 4h 48m   3 on gpu07
            restore/s0 running  own     1  8/64  12  2.3   2.16/40     1d   1 on gpu07
            restore/s3 running  own     1 36/64  56  2.3 !25.20/40 12h 8m   1 on gpu07
            restore/s1 pending  own     1  0/64   0    -   0.00/40  1d 5h   1 Parked in own for the next own GPU (1st of 4)
            restore/s2 pending  own     1 10/64  15    -   2.70/40 1d 11h   1 Parked in own for the next own GPU (2nd of 4)
            restore/s4 pending  extra   1  0/47   0    -   0.00/40 1d 20h   1 Waits in extra for any free GPU (3rd of 4)
            restore/s7 backoff  -       1  5/64   7    -   1.35/40  1d 6h   1 Waits after 1 failure in a row; next try in 1m
            find/s0    done     -       1 44/44 100    -   3.52/25      -   1
            find/s2    done     -       1 44/44 100    -   3.52/25      -   1

            shards  12 shards: 2 done, 4 running, 3 pending, 1 waiting, 2 need a person
            rows    412 left of 671, 18 rows/h, ETA 1d 20h (2 shards not counted)
            cost    $85.15 spent, $236.57 projected, ceiling $420

            needs a person
              restore/s6: It failed 3 times in a row without a new row; last line of its log: KeyError: 'plan'
                babysit log restore/s6      # what happened
                babysit retry restore/s6    # once it is put right
              restore/s5: Its cost cap is reached: $40.10 of $40 spent; only a raised cap lets it go on.
                babysit cap set restore/s5 54

            worth a look
              restore/s3: Will pass its cap before its last row: projected $44.80 ($0.700 a row), cap $40.
                babysit cap set restore/s3 54
        "#]],
    );
}

#[test]
fn no_line_is_wider_than_the_screen() {
    let (policy, state) = afternoon();
    let status = common::status(&policy, &state);
    for width in 48..130 {
        let text = render(&status, &look(Some(width)));
        within(width, text.lines());
        // What is never left out.
        assert!(
            text.contains("SHARD") && text.contains("STATE") && text.contains("WHY"),
            "{width}"
        );
        assert!(text.contains("restore/s6 held"), "{width}");
    }
}

#[test]
fn twelve_shards_at_50_columns() {
    let (_, state) = afternoon();
    check(
        &state,
        50,
        expect![[r#"
        oracle-plan   last tick 40s ago

        SHARD      STATE     ROWS    ETA WHY
        restore/s5 over-cap 58/64      - cap reached
        restore/s6 held     12/64      - 3 failures
        find/s1    running  30/44  2h 6m on gpu07
        find/s3    running  12/44 4h 48m on gpu07
        restore/s0 running   8/64     1d on gpu07
        restore/s3 running  36/64 12h 8m on gpu07
        restore/s1 pending   0/64  1d 5h parked 1/4
        restore/s2 pending  10/64 1d 11h parked 2/4
        restore/s4 pending   0/47 1d 20h any GPU 3/4
        restore/s7 backoff   5/64  1d 6h retry in 1m
        find/s0    done     44/44      -
        find/s2    done     44/44      -

        shards  12 shards: 2 done, 4 running, 3 pending, 1
                waiting, 2 need a person
        rows    412 left of 671, 18 rows/h, ETA 1d 20h (2
                shards not counted)
        cost    $85.15 spent, $236.57 projected, ceiling
                $420

        needs a person
          restore/s6: It failed 3 times in a row without a
          new row; last line of its log: KeyError: 'plan'
            babysit log restore/s6      # what happened
            babysit retry restore/s6
          restore/s5: Its cost cap is reached: $40.10 of
          $40 spent; only a raised cap lets it go on.
            babysit cap set restore/s5 54

        worth a look
          restore/s3: Will pass its cap before its last
          row: projected $44.80 ($0.700 a row), cap $40.
            babysit cap set restore/s3 54
    "#]],
    );
}

#[test]
fn shards_of_one_family_that_reach_their_cap_together_are_told_together() {
    let (_, mut state) = afternoon();
    for (i, spent) in [(4, 39.0), (5, 41.0), (6, 45.5)] {
        let record = &mut state.shards[i];
        record.slot = babysit::model::state::Slot::Free;
        record.progress.rows = 60;
        record.progress.spent = Some(common::dollars(spent));
        if i > 4 {
            let (spent, cap) = (common::dollars(spent), common::dollars(40.0));
            record.over_cap = Some(babysit::model::state::OverCap { spent, cap, at: NOW });
        }
    }
    let text = picture(&state, Some(100));
    let at = text.find("needs a person\n").expect("somebody is needed");
    expect![[r#"
        needs a person
          restore/s6: It failed 3 times in a row without a new row; last line of its log: KeyError: 'plan'
            babysit log restore/s6      # what happened
            babysit retry restore/s6    # once it is put right
          restore: 3 shards (s1 s2 s5) reached the cost cap; only a raised cap lets them go on.
            babysit cap set restore 59

        worth a look
          restore: 2 shards (s0 s3) will pass the cost cap before the last row: projected up to $44.80.
            babysit cap set restore 54
    "#]].assert_eq(&text[at..]);
}

#[test]
fn before_the_first_tick() {
    let state = fresh(&policy());
    let text = picture(&state, Some(80));
    let head = text.lines().next().unwrap_or_default();
    expect!["oracle-plan   no tick yet: run `babysit tick` or `babysit cron --install`"]
        .assert_eq(head);
}

#[test]
fn an_eta_from_a_configured_rate_says_so() {
    let line = |state: &State, id: &str| {
        let text = picture(state, Some(120));
        text.lines().find(|line| line.starts_with(id)).unwrap_or_default().to_owned()
    };
    let mut state = fresh(&policy());
    assert!(line(&state, "find/s0").contains(" ~"), "{}", line(&state, "find/s0"));
    // One measured shard measures its family, and no other.
    state.shards[1].progress.rows = 4;
    state.shards[1].pace = babysit::model::state::Pace { rows: 4, time: Secs::minutes(40) };
    assert!(!line(&state, "find/s0").contains('~'), "{}", line(&state, "find/s0"));
    assert!(line(&state, "restore/s0").contains(" ~"), "{}", line(&state, "restore/s0"));
}

#[test]
fn a_babysitter_that_stopped_is_told() {
    let (_, mut state) = afternoon();
    state.last_tick = Some(TickRecord {
        at: NOW - Secs::minutes(47),
        outcome: TickOutcome::Skipped("squeue: exit 1: Connection reset by peer".into()),
        skipped_in_a_row: 3,
        last_ok: Some(NOW - Secs::minutes(50)),
    });
    let text = picture(&state, Some(80));
    let head: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        oracle-plan   last tick 47m ago: does cron still run it? (`crontab -l`)
          the last 3 ticks were skipped, nothing was decided (the last good one was 50m
          ago): squeue: exit 1: Connection reset by peer

    "#]]
    .assert_eq(&head);
}

#[test]
fn colour_changes_no_text() {
    let (policy, state) = afternoon();
    let status = common::status(&policy, &state);
    let look = |colour| Look { width: Some(100), paint: Paint { colour }, now: NOW };
    let coloured = render(&status, &look(true));
    let codes = regex::Regex::new("\u{1b}\\[[0-9;]*m").expect("a pattern");
    assert!(codes.is_match(&coloured));
    assert_eq!(codes.replace_all(&coloured, ""), render(&status, &look(false)));
}
