//! What the command prints, by example: each file in tests/command is a session, compared word for
//! word. After an intended change `TRYCMD=overwrite cargo test -p shiftwork-cli --test command`
//! writes them anew; read the difference.

#[test]
fn sessions_are_as_written_down() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .case("tests/command/*.trycmd");
}
