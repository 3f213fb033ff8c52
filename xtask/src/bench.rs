//! The benchmarks beside nanoarrow, and beside Arrow C++ for what nanoarrow does not do: what they cost in time, instructions and allocations, and the ceilings they are held to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::context::Context;
use crate::job::{Job, Log, is_installed};
use crate::tally::{Skip, Tally};
use crate::tools::announce;
use crate::workspace::{Workspace, files_in, make_folder, read, remove_folder};

const GATES: &str = "benches/gates.txt";
const WORKLOADS: [&str; 7] = ["W1", "W2", "W3", "W4", "W5", "W7", "W8"];
const ROUNDS: usize = 5;
const OURS: &str = "bowstring";
/// No two of them have the same case.
const PEERS: [&str; 2] = ["nanoarrow", "arrow_cpp"];
/// The end of a case that the peer has nothing like: it is compared with the peer's case of the same name without it.
const ONLY_OURS: &str = ", one owner";

/// Measures everything and shows a table.
pub fn measure(workspace: Workspace, rounds: Option<usize>) -> Result<()> {
    let mut context = start(workspace)?;
    let outcome = table(&mut context, rounds.unwrap_or(ROUNDS).max(1));
    println!("{}", outcome.map_err(|error| with_log(error, &context.log))?);
    Ok(())
}

/// Holds instructions and allocations to their ceilings, shows the account, and tells whether all is well.
pub fn show_gate(workspace: Workspace) -> Result<bool> {
    let mut context = start(workspace)?;
    let tally = gate(&mut context).map_err(|error| with_log(error, &context.log))?;
    for complaint in &tally.failed {
        println!("FAILED: {complaint}");
    }
    for skip in &tally.skipped {
        println!("skipped: {} {}", skip.why, skip.test);
    }
    println!("{}", tally.line());
    Ok(tally.failed.is_empty())
}

/// The same as a part of the tests.
pub fn gate(context: &mut Context) -> Result<Tally> {
    let gates = parse_gates(&read(&context.workspace.path(GATES))?)?;
    let programs = Programs::build(context)?;
    let allocations = programs.allocations(OURS, &context.log)?;
    let instructions = match is_installed("valgrind") {
        true => Some(programs.both(|peer| programs.instructions(peer, &context.log))?),
        false => None,
    };
    Ok(judge(&gates, &allocations, instructions.as_ref()))
}

fn start(workspace: Workspace) -> Result<Context> {
    let log = Log::create(workspace.target("logs/bench.log"))?;
    Ok(Context::new(workspace, log))
}

fn with_log(error: String, log: &Log) -> String {
    format!("{}\n{error}\nThe log is {}", log.tail(40), log.path().display())
}

/// A figure for each case of one program, in the order of the case's name.
type Figures = BTreeMap<String, f64>;

/// What was measured of both.
#[derive(Debug)]
struct Both {
    ours: Figures,
    peer: Figures,
}

impl Both {
    /// Ours, the peer's, and how many times the peer's ours is. A count of nothing was not counted.
    fn compare(&self, case: &str) -> Option<(f64, f64, f64)> {
        let (ours, peer) = (*self.ours.get(case)?, *self.peer.get(peers_case(case))?);
        (ours > 0.0 && peer > 0.0).then(|| (ours, peer, ours / peer))
    }
}

fn peers_case(case: &str) -> &str {
    case.strip_suffix(ONLY_OURS).unwrap_or(case)
}

/// The built programs.
struct Programs {
    folder: PathBuf,
}

impl Programs {
    fn build(context: &mut Context) -> Result<Self> {
        let tools = context.tools()?;
        let release = announce("building and installing the library", || context.release())?;
        let folder = context.workspace.target("benches");
        announce("building the benchmarks", || {
            let job = tools.configure(&context.workspace.path("benches"), &folder);
            let job = job.arg(format!("-DCMAKE_PREFIX_PATH={}", release.path().display()));
            let job = job.arg(format!("-DNANOARROW_SOURCE_DIR={}", tools.nanoarrow().display()));
            job.check(&context.log)?;
            tools.job("cmake").arg("--build").arg(&folder).check(&context.log)
        })?;
        Ok(Self { folder })
    }

    fn program(&self, peer: &str) -> PathBuf {
        self.folder.join(format!("with_{peer}"))
    }

    fn both(&self, measure: impl Fn(&str) -> Result<Figures>) -> Result<Both> {
        let ours = measure(OURS)?;
        let mut peer = Figures::new();
        for name in PEERS {
            peer.extend(measure(name)?);
        }
        Ok(Both { ours, peer })
    }

    /// Nanoseconds of a workload's cases.
    fn time(&self, peer: &str, workload: &str, log: &Log) -> Result<Figures> {
        figures(&Job::new(self.program(peer)).args(["time", workload]).check(log)?)
    }

    fn allocations(&self, peer: &str, log: &Log) -> Result<Figures> {
        let counter = self.folder.join("libcount_allocations.so");
        let job = Job::new(self.program(peer)).arg("allocations").env("LD_PRELOAD", counter);
        figures(&job.check(log)?)
    }

    fn instructions(&self, peer: &str, log: &Log) -> Result<Figures> {
        let folder = self.folder.join("callgrind").join(peer);
        // Files of an earlier run must not be counted.
        remove_folder(&folder)?;
        make_folder(&folder)?;
        let out = format!("--callgrind-out-file={}", folder.join("out").display());
        let job = Job::new("valgrind").args(["--quiet", "--tool=callgrind", &out]);
        job.arg(self.program(peer)).arg("instructions").check(log)?;
        let mut all = Figures::new();
        for file in files_in(&folder, |name| name.starts_with("out.")) {
            all.extend(callgrind_total(&file)?);
        }
        Ok(all)
    }
}

/// Reads the lines `case TAB figure` of a program.
fn figures(text: &str) -> Result<Figures> {
    let lines = text.lines().map(|line| {
        let parts = line.split_once('\t').and_then(|(case, figure)| Some((case, figure.parse().ok()?)));
        parts.map(|(case, figure)| (case.to_owned(), figure)).ok_or_else(|| format!("no figure in: {line}"))
    });
    lines.collect()
}

/// One case's instructions a turn, from the file that callgrind wrote for it; nothing from the file of the whole run.
fn callgrind_total(file: &Path) -> Result<Option<(String, f64)>> {
    let text = read(file)?;
    let value = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).map(str::trim);
    let Some(trigger) = value("desc: Trigger: Client Request:") else { return Ok(None) };
    let read = || {
        let (case, turns) = trigger.rsplit_once('/')?;
        let (turns, total): (f64, f64) = (turns.parse().ok()?, value("totals:")?.parse().ok()?);
        Some((case.to_owned(), total / turns))
    };
    read().map(Some).ok_or_else(|| format!("{}: no total of {trigger}", file.display()))
}

/// What one case is held to.
#[derive(Debug, PartialEq)]
struct Gate {
    case: String,
    most_instructions: Option<f64>,
    allocations: f64,
}

fn parse_gates(text: &str) -> Result<Vec<Gate>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let gates = lines.map(|line| {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let gate = match parts.as_slice() {
            [case, ratio, allocations] => {
                let most = if *ratio == "-" { Some(None) } else { ratio.parse().ok().map(Some) };
                most.zip(allocations.parse().ok()).map(|(most_instructions, allocations)| Gate {
                    case: (*case).to_owned(),
                    most_instructions,
                    allocations,
                })
            }
            _ => None,
        };
        gate.ok_or_else(|| format!("{GATES}: no `case | ratio | allocations`: {line}"))
    });
    gates.collect()
}

/// Counts each number of each case once; a case without a line, or a line without its case, fails.
fn judge(gates: &[Gate], allocations: &Figures, instructions: Option<&Both>) -> Tally {
    let mut tally = Tally::default();
    for case in allocations.keys().filter(|case| gates.iter().all(|gate| gate.case != **case)) {
        tally.failed.push(format!("{case}: has no line in {GATES}"));
    }
    for Gate { case, most_instructions, allocations: expected } in gates {
        let found = allocations.get(case);
        tally.expect(found == Some(expected), || match found {
            Some(found) => format!("{case}: expected {expected} allocations, found {found}"),
            None => format!("{case}: was not measured"),
        });
        let Some(most) = most_instructions else { continue };
        let Some(both) = instructions else {
            tally.skipped.push(Skip { test: case.clone(), why: "no-valgrind".to_owned() });
            continue;
        };
        tally.count(match both.compare(case) {
            None => Some(format!("{case}: its instructions were not counted")),
            Some((ours, peer, ratio)) => (ratio > *most).then(|| {
                format!("{case}: expected at most {most:.2} of {peer:.0} instructions, found {ours:.0}, {ratio:.3}")
            }),
        });
    }
    tally
}

/// The table of everything, for people.
fn table(context: &mut Context, rounds: usize) -> Result<String> {
    let programs = Programs::build(context)?;
    let log = &context.log;
    let mut times = Vec::new();
    for round in 1..=rounds {
        let mut both = Both { ours: Figures::new(), peer: Figures::new() };
        announce(&format!("round {round} of {rounds}"), || {
            // One workload of all after the other, because the machine's speed changes within a round too.
            for workload in WORKLOADS {
                both.ours.extend(programs.time(OURS, workload, log)?);
                for peer in PEERS {
                    both.peer.extend(programs.time(peer, workload, log)?);
                }
            }
            Ok(())
        })?;
        times.push(both);
    }
    let allocations = programs.both(|peer| programs.allocations(peer, log))?;
    let instructions = match is_installed("valgrind") {
        true => Some(announce("counting instructions", || {
            programs.both(|peer| programs.instructions(peer, log))
        })?),
        false => None,
    };
    Ok(render(&times, &allocations, instructions.as_ref()))
}

const HEADING: [&str; 10] =
    ["case", "ns", "peer", "ratio", "range", "instructions", "peer", "ratio", "allocations", "peer"];

fn render(times: &[Both], allocations: &Both, instructions: Option<&Both>) -> String {
    let mut rows = vec![HEADING.map(str::to_owned), HEADING.map(|_| "---".to_owned())];
    let mut cases: Vec<&String> = allocations.ours.keys().collect();
    // 100 columns come after 10, which the order of letters knows nothing of.
    cases.sort_by_cached_key(|case| natural_order(case));
    for case in cases {
        let rounds: Vec<_> = times.iter().filter_map(|both| both.compare(case)).collect();
        let ours = sorted(rounds.iter().map(|round| round.0));
        let peer = sorted(rounds.iter().map(|round| round.1));
        let ratios = sorted(rounds.iter().map(|round| round.2));
        let range = match (ratios.first(), ratios.last()) {
            (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
            _ => String::new(),
        };
        let counted = instructions.and_then(|both| both.compare(case));
        let [our_count, peer_count, count_ratio] = counted.map_or_else(
            || ["no-valgrind", "", ""].map(str::to_owned),
            |(ours, peer, ratio)| [format!("{ours:.0}"), format!("{peer:.0}"), format!("{ratio:.2}")],
        );
        rows.push([
            case.clone(),
            shown(ours.first().copied(), 1),
            shown(peer.first().copied(), 1),
            shown(middle(&ratios), 2),
            range,
            our_count,
            peer_count,
            count_ratio,
            shown(allocations.ours.get(case).copied(), 0),
            shown(allocations.peer.get(peers_case(case)).copied(), 0),
        ]);
    }
    aligned(&rows)
}

/// A name with every number in it as a number.
fn natural_order(name: &str) -> Vec<(String, u64)> {
    let words = name.split(' ').map(|word| (word, word.parse::<u64>()));
    words.map(|(word, number)| number.map_or_else(|_| (word.to_owned(), 0), |n| (String::new(), n))).collect()
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn middle(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

fn shown(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(String::new, |figure| format!("{figure:.digits$}"))
}

/// A table that reads well with and without Markdown.
fn aligned(rows: &[[String; 10]]) -> String {
    let mut widths = [0; 10];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    rows.iter().fold(String::new(), |text, row| {
        let cells: Vec<String> = widths
            .iter()
            .zip(row)
            .enumerate()
            .map(
                |(i, (&width, cell))| {
                    if i == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        text + "| " + &cells.join(" | ") + " |\n"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, f64)]) -> Figures {
        pairs.iter().map(|(case, figure)| ((*case).to_owned(), *figure)).collect()
    }

    #[test]
    fn a_number_above_its_ceiling_fails() {
        let gates = parse_gates("# note\nA | 0.50 | 1\nA, one owner | 0.2 | 1\nB | - | 0\n").unwrap();
        let fast = Both { ours: of(&[("A", 50.0), ("A, one owner", 20.0)]), peer: of(&[("A", 100.0)]) };
        let allocations = of(&[("A", 1.0), ("A, one owner", 1.0), ("B", 0.0)]);
        assert_eq!(judge(&gates, &allocations, Some(&fast)).line(), "5 passed, 0 failed, 0 skipped");
        let slow = Both { ours: of(&[("A", 51.0), ("A, one owner", 20.0)]), peer: of(&[("A", 100.0)]) };
        assert_eq!(judge(&gates, &allocations, Some(&slow)).line(), "4 passed, 1 failed, 0 skipped");
        let wasteful = of(&[("A", 2.0), ("A, one owner", 1.0), ("B", 0.05)]);
        assert_eq!(judge(&gates, &wasteful, Some(&fast)).line(), "3 passed, 2 failed, 0 skipped");
        assert_eq!(judge(&gates, &allocations, None).line(), "3 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn cases_and_lines_go_together() {
        let gates = parse_gates("A | 0.50 | 1\n").unwrap();
        let none = Both { ours: Figures::new(), peer: Figures::new() };
        assert_eq!(judge(&gates, &Figures::new(), Some(&none)).failed.len(), 2);
        // A count that only one side has is none.
        let (allocations, counted) = (of(&[("A", 1.0)]), || of(&[("A", 1.0)]));
        for one_sided in [
            Both { ours: counted(), peer: Figures::new() },
            Both { ours: Figures::new(), peer: counted() },
            Both { ours: of(&[("A", 0.0)]), peer: counted() },
            Both { ours: counted(), peer: of(&[("A", 0.0)]) },
        ] {
            assert_eq!(judge(&gates, &allocations, Some(&one_sided)).failed.len(), 1);
        }
        assert_eq!(judge(&[], &of(&[("A", 1.0)]), Some(&none)).failed.len(), 1);
        assert!(parse_gates("A | quick | 1").is_err() && parse_gates("A | 0.5").is_err());
    }

    #[test]
    fn what_programs_print_is_read() {
        assert_eq!(figures("W5 move\t2.50\n").unwrap(), of(&[("W5 move", 2.5)]));
        assert!(figures("no figure").is_err());
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names = ["W2 100 columns", "W2 9 columns", "W1 x"];
        names.sort_by_cached_key(|name| natural_order(name));
        assert_eq!(names, ["W1 x", "W2 9 columns", "W2 100 columns"]);
    }
}
