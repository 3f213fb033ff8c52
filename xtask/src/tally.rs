//! What a part of the tests found.

/// A test that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The test, or nothing where it is the whole part.
    pub test: String,
    /// The reason that the test gave.
    pub why: String,
}

/// The tests of one part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: usize,
    /// What failed, a line each.
    pub failed: Vec<String>,
    /// What did not run.
    pub skipped: Vec<Skip>,
}

impl Tally {
    /// One passed test.
    pub fn pass() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    /// One failure.
    pub fn failure(complaint: String) -> Self {
        Self { failed: vec![complaint], ..Self::default() }
    }

    /// A part that did not run.
    pub fn skip(why: &str) -> Self {
        Self { skipped: vec![Skip { test: String::new(), why: why.to_owned() }], ..Self::default() }
    }

    /// Counts one test: no complaint is a pass.
    pub fn count(&mut self, complaint: Option<String>) {
        match complaint {
            None => self.passed += 1,
            Some(complaint) => self.failed.push(complaint),
        }
    }

    /// Counts one test by whether it holds.
    pub fn expect(&mut self, holds: bool, complaint: impl FnOnce() -> String) {
        self.count((!holds).then(complaint));
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
    }

    /// The figures in words.
    pub fn line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped.len())
    }
}
