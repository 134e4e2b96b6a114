//! The words of CEL.

/// A token, and where it starts in the expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) at: usize,
    pub(crate) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    Identifier(String),
    Int(i64),
    /// 2^63, which only a minus before it makes an integer.
    IntLimit,
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    Symbol(&'static str),
    End,
}

/// Longer ones first.
const SYMBOLS: [&str; 25] = [
    "&&", "||", "<=", ">=", "==", "!=", "?", ":", "<", ">", "+", "-", "*", "/", "%", "!", ".", ",", "(", ")", "[", "]",
    "{", "}", "=",
];

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SyntaxFault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

pub(crate) fn fault<T>(at: usize, message: impl Into<String>) -> Result<T, SyntaxFault> {
    Err(SyntaxFault { at, message: message.into() })
}

pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, SyntaxFault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blanks(text, at);
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            tokens.push(Token { at, kind: TokenKind::End });
            return Ok(tokens);
        };
        let (kind, end) = if let Some(literal) = string_start(rest) {
            string(text, at, literal)?
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            number(text, at)?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (TokenKind::Identifier(rest[..end].to_owned()), at + end)
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            (TokenKind::Symbol(symbol), at + symbol.len())
        } else {
            return fault(at, format!("{first:?} has no meaning in an expression"));
        };
        tokens.push(Token { at, kind });
        at = end;
    }
}

fn skip_blanks(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with([' ', '\t', '\n', '\r', '\x0c']) {
            at += 1;
        } else {
            return at;
        }
    }
}

fn number(text: &str, at: usize) -> Result<(TokenKind, usize), SyntaxFault> {
    let bytes = text.as_bytes();
    let hex = text[at..].starts_with("0x") || text[at..].starts_with("0X");
    let mut end = if hex { at + 2 } else { at };
    let mut double = false;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'0'..=b'9' => {}
            b'a'..=b'f' | b'A'..=b'F' if hex => {}
            b'.' if !hex && !double && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) => double = true,
            b'e' | b'E' if !hex => {
                let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
                if !bytes.get(end + 1 + signed).is_some_and(u8::is_ascii_digit) {
                    return fault(at, "digits are missing after the e of a number");
                }
                double = true;
                end += 1 + signed;
            }
            _ => break,
        }
        end += 1;
    }
    let digits = if hex { &text[at + 2..end] } else { &text[at..end] };
    if double {
        return digits.parse().map_or_else(
            |_| fault(at, format!("{digits} is not a number")),
            |number| Ok((TokenKind::Double(number), end)),
        );
    }
    let radix = if hex { 16 } else { 10 };
    let Ok(number) = u64::from_str_radix(digits, radix) else {
        return fault(at, format!("{} does not fit into 64 bits", &text[at..end]));
    };
    if matches!(bytes.get(end), Some(b'u' | b'U')) {
        return Ok((TokenKind::Uint(number), end + 1));
    }
    match i64::try_from(number) {
        Ok(number) => Ok((TokenKind::Int(number), end)),
        Err(_) if number == 1 << 63 => Ok((TokenKind::IntLimit, end)),
        Err(_) => fault(at, format!("{number} does not fit into a signed integer of 64 bits; write {number}u")),
    }
}

#[derive(Clone, Copy)]
struct StringStart {
    raw: bool,
    bytes: bool,
    /// How many characters come before the quote.
    prefix: usize,
}

fn string_start(rest: &str) -> Option<StringStart> {
    let prefix = rest.find(['"', '\''])?;
    let (raw, bytes) = match rest.get(..prefix)? {
        "" => (false, false),
        "r" | "R" => (true, false),
        "b" | "B" => (false, true),
        "rb" | "rB" | "Rb" | "RB" | "br" | "bR" | "Br" | "BR" => (true, true),
        _ => return None,
    };
    Some(StringStart { raw, bytes, prefix })
}

fn string(text: &str, start: usize, literal: StringStart) -> Result<(TokenKind, usize), SyntaxFault> {
    let open = start + literal.prefix;
    let quote = &text[open..=open];
    let triple = text[open..].starts_with(&quote.repeat(3));
    let closing = if triple { quote.repeat(3) } else { quote.to_owned() };
    let mut at = open + closing.len();
    let mut content = Content { text: String::new(), bytes: Vec::new(), as_bytes: literal.bytes };
    loop {
        let rest = &text[at..];
        if rest.starts_with(&closing) {
            return Ok((content.token(), at + closing.len()));
        }
        match rest.chars().next() {
            None => return fault(start, "the string has no closing quote"),
            Some('\n' | '\r') if !triple => return fault(start, "the string has no closing quote on its line"),
            Some('\\') if !literal.raw => at = escape(text, at, &mut content)?,
            Some(character) => {
                content.push(character);
                at += character.len_utf8();
            }
        }
    }
}

struct Content {
    text: String,
    bytes: Vec<u8>,
    as_bytes: bool,
}

impl Content {
    fn push(&mut self, character: char) {
        if self.as_bytes {
            self.bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            self.text.push(character);
        }
    }

    fn token(self) -> TokenKind {
        if self.as_bytes { TokenKind::Bytes(self.bytes) } else { TokenKind::String(self.text) }
    }
}

/// Reads the escape at a backslash, and returns where it ends.
fn escape(text: &str, at: usize, content: &mut Content) -> Result<usize, SyntaxFault> {
    let rest = &text[at + 1..];
    let Some(letter) = rest.chars().next() else { return fault(at, "the string ends in a backslash") };
    let simple = match letter {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' | '?' | '"' | '\'' | '`' => letter,
        _ => return numeric_escape(rest, at, letter, content),
    };
    content.push(simple);
    Ok(at + 2)
}

fn numeric_escape(rest: &str, at: usize, letter: char, content: &mut Content) -> Result<usize, SyntaxFault> {
    let (skip, digits, radix) = match letter {
        'x' | 'X' => (1, 2, 16),
        'u' if !content.as_bytes => (1, 4, 16),
        'U' if !content.as_bytes => (1, 8, 16),
        '0'..='3' => (0, 3, 8),
        _ => return fault(at, format!("\\{letter} is no escape that CEL knows")),
    };
    let code = rest.get(skip..skip + digits).and_then(|digits| u32::from_str_radix(digits, radix).ok());
    let end = at + 1 + skip + digits;
    match code {
        Some(code) if content.as_bytes => content.bytes.push(u8::try_from(code).unwrap_or(u8::MAX)),
        Some(code) => match char::from_u32(code) {
            Some(character) => content.text.push(character),
            None => return fault(at, "the escape names no character of Unicode"),
        },
        None => return fault(at, format!("\\{letter} needs {digits} digits")),
    }
    Ok(end)
}
