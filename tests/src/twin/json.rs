//! Turns header text into a tree of JSON nodes, each with its place in the file.
//!
//! A strict reader of RFC 8259 by recursive descent. A break is the offset of the first byte that cannot go on, or of
//! the backslash of an escape that cannot stand, or of the end of the text when it ends too early.

use super::HEADER_START;

/// As many containers may be open at once, the outermost included. `serde_json` has the same limit.
pub const DEPTH_MAX: usize = 127;

/// A value and where it stands. Offsets count from the start of the file.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its first byte.
    pub begin: u64,
    /// The byte behind its last.
    pub end: u64,
    /// What it is.
    pub value: Value,
}

/// What a JSON text can say.
#[derive(Debug, Clone)]
pub enum Value {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// As it is spelled.
    Number(String),
    /// Unescaped.
    Text(String),
    /// The elements in order.
    Array(Vec<Node>),
    /// The members in order, equal keys and all.
    Object(Vec<Member>),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub struct Member {
    /// The key's opening quote, counted from the start of the file.
    pub key_at: u64,
    /// The key, unescaped.
    pub key: String,
    /// The value.
    pub node: Node,
}

impl Node {
    /// The members of an object; none of anything else.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The elements of an array, or `None` of anything else.
    #[must_use]
    pub fn elements(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// The string, or `None` of anything else.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is spelled as an integer in 0..=2^64-1: digits alone.
    #[must_use]
    pub fn integer(&self) -> Option<u64> {
        match &self.value {
            Value::Number(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
            _ => None,
        }
    }
}

/// Reads one JSON value from the start of `text`; what follows it is not looked at.
///
/// # Errors
/// The offset, from the start of the file, at which the text stops being JSON.
pub fn parse(text: &str) -> Result<Node, u64> {
    let mut parser = Parser { bytes: text.as_bytes(), at: 0, open: 0 };
    parser.value().map_err(|Stuck(at)| HEADER_START + at as u64)
}

/// The place, in the header, where the text stops being JSON.
struct Stuck(usize);

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    open: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// No byte can go on from here. At the end of the text that is the end of the text.
    fn stuck<T>(&self) -> Result<T, Stuck> {
        Err(Stuck(self.at))
    }

    fn expect(&mut self, byte: u8) -> Result<(), Stuck> {
        if self.peek() != Some(byte) {
            return self.stuck();
        }
        self.at += 1;
        Ok(())
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Node, Stuck> {
        let begin = self.offset();
        let value = match self.peek() {
            Some(b'{') => Value::Object(self.object()?),
            Some(b'[') => Value::Array(self.array()?),
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number()?),
            Some(b't') => self.literal("true", Value::Bool(true))?,
            Some(b'f') => self.literal("false", Value::Bool(false))?,
            Some(b'n') => self.literal("null", Value::Null)?,
            _ => return self.stuck(),
        };
        Ok(Node { begin, end: self.offset(), value })
    }

    fn offset(&self) -> u64 {
        HEADER_START + self.at as u64
    }

    /// Steps over an opening bracket.
    fn enter(&mut self) -> Result<(), Stuck> {
        if self.open == DEPTH_MAX {
            return self.stuck();
        }
        self.open += 1;
        self.at += 1;
        self.blanks();
        Ok(())
    }

    /// Steps over a closing bracket.
    fn leave(&mut self) {
        self.open -= 1;
        self.at += 1;
    }

    fn object(&mut self) -> Result<Vec<Member>, Stuck> {
        let mut members = Vec::new();
        self.enter()?;
        if self.peek() == Some(b'}') {
            self.leave();
            return Ok(members);
        }
        loop {
            members.push(self.member()?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.stuck(),
            }
            self.blanks();
        }
        self.leave();
        Ok(members)
    }

    fn member(&mut self) -> Result<Member, Stuck> {
        let key_at = self.offset();
        let key = self.string()?;
        self.blanks();
        self.expect(b':')?;
        self.blanks();
        Ok(Member { key_at, key, node: self.value()? })
    }

    fn array(&mut self) -> Result<Vec<Node>, Stuck> {
        let mut nodes = Vec::new();
        self.enter()?;
        if self.peek() == Some(b']') {
            self.leave();
            return Ok(nodes);
        }
        loop {
            nodes.push(self.value()?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.stuck(),
            }
            self.blanks();
        }
        self.leave();
        Ok(nodes)
    }

    fn literal(&mut self, spelled: &str, value: Value) -> Result<Value, Stuck> {
        for byte in spelled.bytes() {
            self.expect(byte)?;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<String, Stuck> {
        let begin = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            // Whatever comes next, a further digit cannot: whoever called stops at it.
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(self.bytes[begin..self.at].iter().map(|byte| char::from(*byte)).collect())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Stuck> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.stuck();
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Stuck> {
        self.expect(b'"')?;
        let mut unescaped = Vec::new();
        loop {
            match self.peek() {
                None | Some(..0x20) => return self.stuck(),
                Some(b'"') => break,
                Some(b'\\') => {
                    let char = self.escape()?;
                    unescaped.extend(char.to_string().into_bytes());
                }
                Some(byte) => {
                    unescaped.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(String::from_utf8(unescaped).expect("the header is UTF-8"))
    }

    fn escape(&mut self) -> Result<char, Stuck> {
        let backslash = self.at;
        self.at += 1;
        let char = match self.peek() {
            None => return self.stuck(),
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.utf16(backslash),
            Some(_) => return Err(Stuck(backslash)),
        };
        self.at += 1;
        Ok(char)
    }

    /// `\uXXXX`, or two of them that make one character; stands on the `u`.
    fn utf16(&mut self, backslash: usize) -> Result<char, Stuck> {
        let first = self.hex4(backslash)?;
        if let Some(char) = char::from_u32(first) {
            return Ok(char);
        }
        if (0xDC00..=0xDFFF).contains(&first) {
            return Err(Stuck(backslash));
        }
        let second_backslash = self.at;
        for byte in [b'\\', b'u'] {
            match self.peek() {
                None => return self.stuck(),
                Some(other) if other != byte => return Err(Stuck(backslash)),
                // `hex4` wants to stand on the `u`.
                Some(b'u') => {}
                Some(_) => self.at += 1,
            }
        }
        let second = self.hex4(second_backslash)?;
        if !(0xDC00..=0xDFFF).contains(&second) {
            return Err(Stuck(backslash));
        }
        let code = 0x1_0000 + (first - 0xD800) * 0x400 + (second - 0xDC00);
        Ok(char::from_u32(code).expect("two surrogates make a character"))
    }

    /// Four hexadecimal digits behind the `u` on which it stands.
    fn hex4(&mut self, backslash: usize) -> Result<u32, Stuck> {
        self.at += 1;
        let mut code = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else { return self.stuck() };
            let Some(digit) = char::from(byte).to_digit(16) else { return Err(Stuck(backslash)) };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}
