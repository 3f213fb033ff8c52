//! The skips that are allowed, and whether their condition holds now.

use std::env;
use std::path::Path;

use crate::Result;
use crate::job::is_installed;
use crate::tally::{Skip, Tally};
use crate::workspace::{Workspace, read};

const CONDITIONS: [&str; 6] = ["no-golden", "no-valgrind", "no-clang", "no-abidiff", "no-chromium", "no-gpu"];
/// Any of them will do.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The lines of tests/expected_skips.txt, with what holds on this machine.
#[derive(Debug)]
pub struct ExpectedSkips {
    rules: Vec<Rule>,
    holding: Vec<&'static str>,
}

#[derive(Debug)]
struct Rule {
    pattern: String,
    condition: &'static str,
}

impl ExpectedSkips {
    /// Reads the file and looks at the machine.
    pub fn load(workspace: &Workspace) -> Result<Self> {
        let rules = parse(&read(&workspace.path("tests/expected_skips.txt"))?)?;
        let in_ci = env::var("CI").is_ok_and(|value| value == "true");
        let holding = CONDITIONS.into_iter().filter(|condition| {
            let allowed = !in_ci || *condition == "no-gpu";
            allowed && holds(condition, workspace)
        });
        Ok(Self { rules, holding: holding.collect() })
    }

    /// Turns every skip of a part that no line allows into a failure.
    pub fn judge(&self, part: &str, tally: &mut Tally) {
        let (allowed, refused): (Vec<Skip>, Vec<Skip>) =
            tally.skipped.drain(..).partition(|skip| self.allows(part, &skip.test));
        tally.skipped = allowed;
        let complaints = refused.iter().map(|skip| format!("{}: unexpected skip: {}", skip.test, skip.why));
        tally.failed.extend(complaints);
    }

    fn allows(&self, part: &str, test: &str) -> bool {
        self.rules.iter().any(|rule| {
            let matches = match test {
                "" => glob(&rule.pattern, part),
                _ => glob(&rule.pattern, test) || glob(&rule.pattern, &format!("{part}/{test}")),
            };
            matches && self.holding.contains(&rule.condition)
        })
    }
}

fn parse(text: &str) -> Result<Vec<Rule>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (pattern, name) =
                line.rsplit_once(": ").ok_or_else(|| format!("no `pattern: condition`: {line}"))?;
            let condition = CONDITIONS.into_iter().find(|condition| *condition == name.trim());
            let condition =
                condition.ok_or_else(|| format!("{name} is not one of {}", CONDITIONS.join(", ")))?;
            Ok(Rule { pattern: pattern.trim().to_owned(), condition })
        })
        .collect()
}

fn holds(condition: &str, workspace: &Workspace) -> bool {
    match condition {
        "no-golden" => workspace.golden().is_none(),
        "no-valgrind" => !is_installed("valgrind"),
        "no-clang" => !is_installed("clang"),
        "no-abidiff" => !(is_installed("abidiff") && is_installed("abidw")),
        "no-chromium" => !BROWSERS.into_iter().any(is_installed),
        "no-gpu" => !Path::new("/dev/nvidia0").exists() && !Path::new("/dev/dxg").exists(),
        _ => false,
    }
}

/// Whether a pattern with `*` for any text fits the whole name.
fn glob(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| name.get(at..).is_some_and(|left| glob(rest, left)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(text: &str, holding: &[&'static str]) -> ExpectedSkips {
        ExpectedSkips { rules: parse(text).unwrap(), holding: holding.to_vec() }
    }

    fn judged(expected: &ExpectedSkips, part: &str, test: &str) -> Tally {
        let mut tally = Tally::default();
        tally.skipped.push(Skip { test: test.to_owned(), why: "why".to_owned() });
        expected.judge(part, &mut tally);
        tally
    }

    #[test]
    fn a_skip_needs_a_line_and_its_condition() {
        let text = "# note\nc-valgrind: no-valgrind\npython/test_golden*: no-golden\n";
        let expected = skips(text, &["no-valgrind"]);
        assert_eq!(judged(&expected, "c-valgrind", "").skipped.len(), 1);
        assert_eq!(judged(&expected, "c-valgrind", "one_test").failed.len(), 1);
        assert_eq!(judged(&expected, "python", "test_golden_read").failed.len(), 1);
        let expected = skips(text, &["no-golden"]);
        assert_eq!(judged(&expected, "python", "test_golden_read").skipped.len(), 1);
        assert_eq!(judged(&expected, "rust", "test_golden_read").failed.len(), 1);
    }

    #[test]
    fn unknown_conditions_are_refused() {
        assert!(parse("c: whenever").is_err());
        assert!(parse("no condition").is_err());
    }

    #[test]
    fn stars_stand_for_any_text() {
        assert!(glob("a*c", "abbc") && glob("*", "") && glob("a*", "a") && glob("*::x*", "m::xy"));
        assert!(!glob("a*c", "abcd") && !glob("a", "ab"));
    }
}
