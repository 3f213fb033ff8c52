//! Validation beside its peers: one program that validates the same arrays with each library in turn.

use crate::Result;
use crate::context::Context;
use crate::job::{Job, Log};
use crate::tools::announce;
use crate::workspace::Workspace;

const FOLDER: &str = "benches/validate";
const CRATE: &str = "benches/validate/arrow_rs";
const ROUNDS: usize = 9;
const OURS: &str = "bowstring";

/// What time is wanted of each case, as a part of the best peer's.
const WANTED: [(&str, f64); 8] = [
    ("utf8 ASCII", 0.40),
    ("utf8 multi-byte", 0.10),
    ("list offsets", 0.30),
    ("int64 null counts", 0.90),
    ("dictionary", 0.45),
    ("dictionary with nulls", 0.10),
    ("dense union", 0.35),
    ("string view", 0.20),
];

/// Measures every case and shows a table.
pub fn measure(workspace: Workspace, rounds: Option<usize>) -> Result<()> {
    let log = Log::create(workspace.target("logs/bench-validate.log"))?;
    let mut context = Context::new(workspace, log);
    let outcome = table(&mut context, rounds.unwrap_or(ROUNDS).max(1));
    let log = &context.log;
    let with_log = |error| format!("{}\n{error}\nThe log is {}", log.tail(40), log.path().display());
    println!("{}", outcome.map_err(with_log)?);
    Ok(())
}

fn table(context: &mut Context, rounds: usize) -> Result<String> {
    let tools = context.tools()?;
    let release = announce("building and installing the library", || context.release())?;
    let (workspace, log) = (&context.workspace, &context.log);
    let crate_target = workspace.target("validate-arrow-rs");
    announce("building arrow-rs", || {
        let job = Job::cargo().args(["build", "--release", "--locked", "--target-dir"]);
        job.arg(&crate_target).dir(&workspace.path(CRATE)).check(log)
    })?;
    let build = workspace.target("validate");
    announce("building the benchmark", || {
        let library = crate_target.join("release/libvalidate_with_arrow_rs.a");
        let job = tools.configure(&workspace.path(FOLDER), &build);
        let job = job.arg(format!("-DCMAKE_PREFIX_PATH={}", release.path().display()));
        let job = job.arg(format!("-DNANOARROW_SOURCE_DIR={}", tools.nanoarrow().display()));
        job.arg(format!("-DARROW_RS_LIBRARY={}", library.display())).check(log)?;
        tools.job("cmake").arg("--build").arg(&build).check(log)
    })?;
    let lines = announce(&format!("measuring, {rounds} rounds"), || {
        let lines = Job::new(build.join("validate")).arg(rounds.to_string()).check(log)?;
        lines.lines().map(parse).collect::<Result<Vec<Line>>>()
    })?;
    render(&lines)
}

/// What the program says of one case with one library.
#[derive(Debug, PartialEq)]
struct Line {
    case: String,
    library: String,
    nanoseconds: f64,
    bytes: f64,
    /// Whether the library finds a fault in the case when there is one; it is no peer otherwise.
    notices: bool,
}

fn parse(line: &str) -> Result<Line> {
    let parts: Vec<&str> = line.split('\t').collect();
    let parsed = match parts.as_slice() {
        [case, library, nanoseconds, bytes, notices @ ("0" | "1")] => {
            nanoseconds.parse().ok().zip(bytes.parse().ok()).map(|(nanoseconds, bytes)| Line {
                case: (*case).to_owned(),
                library: (*library).to_owned(),
                nanoseconds,
                bytes,
                notices: *notices == "1",
            })
        }
        _ => None,
    };
    parsed.ok_or_else(|| format!("no figures in: {line}"))
}

/// Ours, the best peer's, and each peer's; a peer that does not notice the fault in brackets.
fn render(lines: &[Line]) -> Result<String> {
    let mut text = String::new();
    for (case, wanted) in WANTED {
        let of_case: Vec<&Line> = lines.iter().filter(|line| line.case == case).collect();
        let (ours, peers): (Vec<&Line>, Vec<&Line>) = of_case.iter().partition(|line| line.library == OURS);
        let Some(ours) = ours.first() else { return Err(format!("{case}: was not measured")) };
        if !ours.notices {
            return Err(format!("{case}: {OURS} does not notice the fault"));
        }
        let able = peers.iter().filter(|line| line.notices);
        let best = able.min_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
        let Some(best) = best else { return Err(format!("{case}: no peer notices the fault")) };
        let each = peers.iter().map(|line| {
            let shown = format!("{} {:.2}", line.library, line.nanoseconds / 1e6);
            if line.notices { shown } else { format!("({shown})") }
        });
        let each: Vec<String> = each.collect();
        let ratio = ours.nanoseconds / best.nanoseconds;
        text += &format!(
            "| {case:21} | {:8.2} | {:5.1} | {:10} | {:8.2} | {ratio:5.2} | {wanted:6.2} | {:5} | {} |\n",
            ours.nanoseconds / 1e6,
            ours.bytes / ours.nanoseconds,
            best.library,
            best.nanoseconds / 1e6,
            if ratio <= wanted { "yes" } else { "no" },
            each.join(", "),
        );
    }
    let head = format!(
        "| {:21} | {:>8} | {:>5} | {:10} | {:>8} | {:>5} | {:>6} | {:5} | {} |\n",
        "case", "ms", "GB/s", "best peer", "ms", "ratio", "wanted", "met", "each peer, ms"
    );
    Ok(head + "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n" + &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(ours: &str) -> Vec<Line> {
        let each = WANTED.iter().flat_map(|(case, _)| {
            [
                format!("{case}\tbowstring\t{ours}"),
                format!("{case}\tfast\t10\t100\t0"),
                format!("{case}\tslow\t1000\t100\t1"),
            ]
        });
        each.map(|line| parse(&line).unwrap()).collect()
    }

    #[test]
    fn only_who_notices_the_fault_is_a_peer() {
        let table = render(&lines("300\t100\t1")).unwrap();
        let row = table.lines().find(|line| line.contains("utf8 ASCII")).unwrap();
        assert!(row.contains("| slow ") && row.contains(" 0.30 ") && row.contains("| yes "), "{row}");
        assert!(row.contains("(fast 0.00)"), "{row}");
        let row = table.lines().find(|line| line.contains("dictionary with nulls")).unwrap();
        assert!(row.contains("| no "), "{row}");
        assert!(render(&lines("300\t100\t0")).is_err(), "we have to notice it");
    }

    #[test]
    fn a_case_that_was_not_measured_is_told() {
        let mut all = lines("300\t100\t1");
        all.retain(|line| line.case != "dense union");
        assert!(render(&all).is_err());
        assert!(parse("utf8 ASCII\tbowstring\tfast\t1\t1").is_err() && parse("").is_err());
    }
}
