//! The test reports that ctest and pytest write.

use crate::tally::{Skip, Tally};

/// Counts the cases of a JUnit report.
pub fn tally(report: &str) -> Tally {
    let mut tally = Tally::default();
    for case in report.split("<testcase").skip(1) {
        let open_end = case.find('>').unwrap_or(case.len());
        let (head, body) = case.split_at(open_end);
        let body = match head.ends_with('/') {
            true => "",
            false => body.split("</testcase>").next().unwrap_or_default(),
        };
        let name = name(head);
        if body.contains("<failure")
            || body.contains("<error")
            || attribute(head, "status").as_deref() == Some("fail")
        {
            tally.failed.push(name);
        } else if let Some(skipped) = body.split("<skipped").nth(1) {
            let message = attribute(skipped.split('>').next().unwrap_or_default(), "message");
            tally.skipped.push(Skip { test: name, why: reason(body).or(message).unwrap_or_default() });
        } else {
            tally.passed += 1;
        }
    }
    tally
}

/// ctest repeats the name as the class; pytest's class is the file.
fn name(head: &str) -> String {
    let name = attribute(head, "name").unwrap_or_default();
    match attribute(head, "classname") {
        Some(class) if class != name && !class.is_empty() => format!("{}::{name}", last_part(&class)),
        _ => name,
    }
}

fn last_part(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

/// The line with which a skipped program says why.
fn reason(body: &str) -> Option<String> {
    let output = body.split("<system-out>").nth(1)?;
    let line = output.lines().find_map(|line| line.trim().strip_prefix("skipped:"))?;
    Some(unescape(line.split('<').next().unwrap_or(line).trim()))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let start = tag.find(&format!(" {name}=\"")).map(|at| at + name.len() + 3)?;
    tag.get(start..)?.split('"').next().map(unescape)
}

fn unescape(text: &str) -> String {
    let named =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#10;", "\n"), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (entity, plain)| text.replace(entity, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctest_reports_are_counted() {
        let report = "<testsuite tests=\"4\">\n\
            <testcase name=\"a\" classname=\"a\" time=\"0\" status=\"run\"><system-out>fine</system-out></testcase>\n\
            <testcase name=\"b\" classname=\"b\" status=\"fail\"><failure message=\"Failed\"/></testcase>\n\
            <testcase name=\"c\" classname=\"c\" status=\"notrun\"><skipped message=\"SKIP_RETURN_CODE=77\"/>\n\
            <system-out>skipped: no GPU &lt;here&gt;\n</system-out></testcase>\n\
            <testcase name=\"d\" classname=\"d\" status=\"notrun\"><skipped message=\"SKIP_RETURN_CODE=77\"/></testcase>";
        let found = tally(report);
        assert_eq!(found.passed, 1);
        assert_eq!(found.failed, ["b"]);
        let why: Vec<_> = found.skipped.iter().map(|skip| (skip.test.as_str(), skip.why.as_str())).collect();
        assert_eq!(why, [("c", "no GPU <here>"), ("d", "SKIP_RETURN_CODE=77")]);
    }

    #[test]
    fn pytest_reports_are_counted() {
        let report = "<testcase classname=\"tests.python.test_x\" name=\"test_a\" time=\"0.1\" />\
            <testcase classname=\"tests.python.test_x\" name=\"test_b\"><skipped type=\"pytest.skip\" \
            message=\"skipped: no golden files\">file:3</skipped></testcase>\
            <testcase classname=\"tests.python.test_x\" name=\"test_c\"><error message=\"boom\"/></testcase>";
        let found = tally(report);
        assert_eq!((found.passed, found.failed), (1, vec!["test_x::test_c".to_owned()]));
        assert_eq!(
            found.skipped,
            [Skip { test: "test_x::test_b".into(), why: "skipped: no golden files".into() }]
        );
    }
}
