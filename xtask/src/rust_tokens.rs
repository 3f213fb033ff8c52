//! Just enough of Rust's lexer to see names: comments, strings and characters drop out.

/// A word, or one punctuation mark (`::` counts as one), and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The text.
    pub text: String,
    /// The line, from 1.
    pub line: usize,
}

/// The tokens of a source text.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer { rest: source, line: 1, found: Vec::new() };
    while lexer.step() {}
    lexer.found
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.skip(block_comment(self.rest));
        } else if let Some(length) = raw_string(self.rest) {
            self.skip(length);
        } else if let Some(length) = raw_identifier(self.rest) {
            self.skip(2);
            self.take(length);
        } else if let Some(prefix) = quote_prefix(self.rest, '"') {
            let quoted = self.rest.get(prefix..).unwrap_or_default();
            self.skip(prefix + quoted_length(quoted, '"'));
        } else if let Some(prefix) = quote_prefix(self.rest, '\'') {
            let quoted = self.rest.get(prefix..).unwrap_or_default();
            match is_lifetime(quoted) {
                true => self.skip(1 + word_length(quoted.get(1..).unwrap_or_default())),
                false => self.skip(prefix + quoted_length(quoted, '\'')),
            }
        } else if is_word(first) {
            self.take(word_length(self.rest));
        } else if self.rest.starts_with("::") {
            self.take(2);
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.take(first.len_utf8());
        }
        true
    }

    fn advance(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line += taken.matches('\n').count();
        taken
    }

    fn skip(&mut self, length: usize) {
        self.advance(length.max(1));
    }

    fn take(&mut self, length: usize) {
        let line = self.line;
        let text = self.advance(length).to_owned();
        self.found.push(Token { text, line });
    }
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn word_length(text: &str) -> usize {
    text.find(|letter| !is_word(letter)).unwrap_or(text.len())
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a raw string that starts here.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| text.starts_with(prefix))?;
    let after = text.get(prefix.len()..)?;
    let hashes = after.find(|letter| letter != '#')?;
    let body = after.get(hashes..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(prefix.len() + hashes + 1 + end)
}

/// The length of the name in `r#name`.
fn raw_identifier(text: &str) -> Option<usize> {
    let name = text.strip_prefix("r#")?;
    Some(word_length(name)).filter(|length| *length > 0)
}

/// How many letters stand before the quote that starts here.
fn quote_prefix(text: &str, quote: char) -> Option<usize> {
    let prefixes: &[&str] = if quote == '"' { &["", "b", "c"] } else { &["", "b"] };
    prefixes
        .iter()
        .find(|prefix| text.strip_prefix(**prefix).is_some_and(|rest| rest.starts_with(quote)))
        .map(|p| p.len())
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + letter.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// `'a` is a lifetime, `'a'` a character.
fn is_lifetime(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    let starts_word = letters.next().is_some_and(is_word);
    starts_word && letters.next() != Some('\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_strings_do_not_count() {
        let source = "a // b\n/* c /* d */ e */ f \"g \\\" h\" b\"i\" r#\"j \" k\"# c\"l\" m";
        assert_eq!(words(source), ["a", "f", "m"]);
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        assert_eq!(
            words("x::<'a>('\"', b'\\'', '\\\\', 'é') y"),
            ["x", "::", "<", ">", "(", ",", ",", ",", ")", "y"]
        );
        assert_eq!(words("'static unsafe"), ["unsafe"]);
    }

    #[test]
    fn raw_names_and_lines_are_kept() {
        assert_eq!(words("r#type b r"), ["type", "b", "r"]);
        let lines: Vec<usize> = tokens("a\n\"x\ny\"\nb").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 4]);
    }
}
