//! What a C header offers: functions, types, their members and constants, each with the comment above it.

/// What kind of thing an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function.
    Function,
    /// A type.
    Type,
    /// A field or an enumerator.
    Member,
    /// A macro with a value.
    Constant,
}

/// Something that C code can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The comment directly above.
    pub comment: Option<String>,
    /// Its line, from 1.
    pub line: usize,
}

/// Everything that a header offers.
pub fn items(text: &str) -> Vec<Item> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    outer_items(&tokens, &mut found);
    found
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    Comment(&'a str),
    Directive(&'a str),
    /// A word, or one mark.
    Code(&'a str),
}

#[derive(Clone, Debug)]
struct Placed<'a> {
    token: Token<'a>,
    line: usize,
}

impl<'a> Placed<'a> {
    fn code(&self) -> &'a str {
        match self.token {
            Token::Code(text) => text,
            _ => "",
        }
    }
}

fn tokens(text: &str) -> Vec<Placed<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let is_word = |letter: char| letter == '_' || letter.is_alphanumeric();
        let length = match first {
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '#' => directive_length(rest),
            '"' => rest.get(1..).and_then(|body| body.find('"')).map_or(rest.len(), |at| at + 2),
            _ if is_word(first) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (taken, left) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let token = match first {
            _ if first.is_whitespace() => None,
            '/' if length > 1 => Some(Token::Comment(taken)),
            '#' => Some(Token::Directive(taken)),
            _ => Some(Token::Code(taken)),
        };
        found.extend(token.map(|token| Placed { token, line }));
        line += taken.matches('\n').count();
        rest = left;
    }
    found
}

/// A directive ends at the first line that is not continued, or where a comment starts.
fn directive_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        if let Some(comment) = line.find("/*") {
            return length + comment;
        }
        length += line.trim_end_matches('\n').len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
        length += 1;
    }
    length
}

fn outer_items<'a>(tokens: &[Placed<'a>], found: &mut Vec<Item>) {
    let mut comment = None;
    let mut rest = tokens;
    while let Some((first, after)) = rest.split_first() {
        match &first.token {
            Token::Comment(text) => {
                comment = joined(comment, text);
                rest = after;
            }
            Token::Directive(text) => {
                let name = constant_name(text);
                let own = if text.contains("define") { comment.take() } else { None };
                found.extend(name.map(|name| item(Kind::Constant, &name, own, first.line)));
                rest = after;
            }
            Token::Code("}" | ";") => rest = after,
            Token::Code("extern") if after.first().is_some_and(|next| next.code().starts_with('"')) => {
                // The declarations inside the braces are as outermost as those around them.
                rest = after.get(2..).unwrap_or_default();
            }
            Token::Code(_) => {
                let length = declaration_length(rest);
                let (declaration, left) = rest.split_at_checked(length).unwrap_or((rest, &[]));
                declared(declaration, comment.take(), found);
                rest = left;
            }
        }
    }
}

/// Line comments that follow each other are one comment.
fn joined(above: Option<String>, text: &str) -> Option<String> {
    match above {
        Some(above) if text.starts_with("//") && above.starts_with("//") => Some(above + "\n" + text),
        _ => Some(text.to_owned()),
    }
}

fn item(kind: Kind, name: &str, comment: Option<String>, line: usize) -> Item {
    Item { kind, name: name.to_owned(), comment, line }
}

/// A macro of ours that stands for a value. Guards and helper macros say nothing to the user.
fn constant_name(directive: &str) -> Option<String> {
    let mut words = directive.trim_start_matches('#').split_whitespace();
    let (define, name, value) = (words.next()?, words.next()?, words.next()?);
    let is_value = value.starts_with(|letter: char| letter.is_ascii_digit() || "\"-(".contains(letter));
    (define == "define" && is_value && name.starts_with("BOWSTRING_") && !name.contains('('))
        .then(|| name.to_owned())
}

/// Up to the semicolon, or to the end of an inline function's body.
fn declaration_length(tokens: &[Placed<'_>]) -> usize {
    let mut depth = 0_usize;
    let mut is_call = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.code() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => {
                depth = depth.saturating_sub(1);
                is_call |= depth == 0;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && is_call {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn declared(declaration: &[Placed<'_>], comment: Option<String>, found: &mut Vec<Item>) {
    let code: Vec<&Placed<'_>> = declaration.iter().filter(|token| !token.code().is_empty()).collect();
    let words: Vec<&str> = code.iter().map(|token| token.code()).collect();
    let line = code.first().map_or(1, |token| token.line);
    let is_typedef = words.first() == Some(&"typedef");
    let tag = words.get(usize::from(is_typedef)).copied().unwrap_or_default();
    let body = declaration.iter().position(|token| token.code() == "{");
    match body {
        Some(body) if matches!(tag, "struct" | "union" | "enum") => {
            let tagged = words.get(1).copied().filter(|_| !is_typedef);
            let name = tagged.or_else(|| last_name(&words)).unwrap_or_default();
            found.push(item(Kind::Type, name, comment, line));
            let end = declaration.iter().rposition(|token| token.code() == "}").unwrap_or(declaration.len());
            members(declaration.get(body + 1..end).unwrap_or_default(), tag == "enum", name, found);
        }
        // `struct X;` only makes a name known; whoever defines it documents it.
        None if matches!(tag, "struct" | "union" | "enum") && words.len() == 3 => {}
        _ if matches!(tag, "_Static_assert" | "static_assert") => {}
        _ if is_typedef => found.push(item(Kind::Type, last_name(&words).unwrap_or_default(), comment, line)),
        _ => {
            let open = words.iter().position(|word| *word == "(").unwrap_or(words.len());
            let name = words.get(open.saturating_sub(1)).copied().unwrap_or_default();
            found.push(item(Kind::Function, name, comment, line));
        }
    }
}

fn members(tokens: &[Placed<'_>], is_enum: bool, owner: &str, found: &mut Vec<Item>) {
    let mut comment = None;
    let mut code: Vec<&str> = Vec::new();
    let mut line = 0;
    let mut depth = 0_usize;
    let end = Placed { token: Token::Code(";"), line: 0 };
    for token in tokens.iter().chain(is_enum.then_some(&end)) {
        match &token.token {
            Token::Comment(text) if code.is_empty() => comment = joined(comment, text),
            Token::Comment(_) | Token::Directive(_) => {}
            Token::Code(mark @ (";" | ",")) if depth == 0 && (*mark == ";" || is_enum) => {
                if let Some(name) = member_name(&code, is_enum) {
                    found.push(item(Kind::Member, &format!("{owner}.{name}"), comment.take(), line));
                }
                code.clear();
            }
            Token::Code(text) => {
                match *text {
                    "(" | "[" | "{" => depth += 1,
                    ")" | "]" | "}" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if code.is_empty() {
                    line = token.line;
                }
                code.push(text);
            }
        }
    }
}

fn member_name<'a>(code: &[&'a str], is_enum: bool) -> Option<&'a str> {
    if is_enum {
        return code.first().copied();
    }
    // A function pointer's name stands behind its star: `int (*name)(void)`.
    let pointer = code.windows(3).find_map(|window| match window {
        ["(", "*", name] => Some(*name),
        _ => None,
    });
    let plain =
        code.iter().position(|word| *word == "[").map_or(code, |at| code.get(..at).unwrap_or_default());
    pointer.or_else(|| last_name(plain))
}

fn last_name<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_name = |word: &&&str| word.starts_with(|letter: char| letter == '_' || letter.is_alphabetic());
    words.iter().rev().find(is_name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(Kind, String, bool)> {
        items(text).into_iter().map(|item| (item.kind, item.name, item.comment.is_some())).collect()
    }

    #[test]
    fn functions_types_members_and_constants_are_found() {
        let text = "\
#ifndef BOWSTRING_H
#define BOWSTRING_H
#include <stdint.h>
#define BOWSTRING_API __attribute__((visibility(\"default\")))
/** One. */
#define BOWSTRING_ONE 1
#define BOWSTRING_TWO (1 << 1)
#ifdef __cplusplus
extern \"C\" {
#endif
struct Elsewhere;
/** A status. */
typedef int32_t BowstringStatus;
/** Pair. */
typedef struct BowstringPair {
  /** First. */
  int64_t first[4];
  int (*call)(void *ctx, int64_t n);
  void (*both)(int), *other;
} BowstringPair;
typedef struct BowstringType BowstringType;
/** Does. Ownership: none. */
BOWSTRING_API
BowstringStatus bowstring_do(const struct Elsewhere *a, void (*f)(void *), int b);
const char *bowstring_name(int32_t status);
enum Letter { A = 1, /** B. */ B };
_Static_assert(sizeof(int) == 4, \"int\");
static inline int bowstring_inline(void) { return f(1); }
#ifdef __cplusplus
}
#endif
#endif
";
        let expected = [
            (Kind::Constant, "BOWSTRING_ONE", true),
            (Kind::Constant, "BOWSTRING_TWO", false),
            (Kind::Type, "BowstringStatus", true),
            (Kind::Type, "BowstringPair", true),
            (Kind::Member, "BowstringPair.first", true),
            (Kind::Member, "BowstringPair.call", false),
            (Kind::Member, "BowstringPair.both", false),
            (Kind::Type, "BowstringType", false),
            (Kind::Function, "bowstring_do", true),
            (Kind::Function, "bowstring_name", false),
            (Kind::Type, "Letter", false),
            (Kind::Member, "Letter.A", false),
            (Kind::Member, "Letter.B", true),
            (Kind::Function, "bowstring_inline", false),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(kind, name, has)| (*kind, (*name).to_owned(), *has)).collect();
        assert_eq!(found(text), expected);
    }

    #[test]
    fn lines_and_joined_comments_are_kept() {
        let items = items("\n/// one\n/// two\nint f(void);\n");
        let first = items.first().unwrap();
        assert_eq!((first.line, first.comment.as_deref()), (4, Some("/// one\n/// two")));
    }
}
