//! Where and why a text stops being JSON, in words of the grammar.

use core::fmt;

/// What a JSON text could go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A value.
    Value,
    /// A key, or the closing brace of an empty object.
    KeyOrClose,
    /// A key.
    Key,
    /// The colon after a key.
    Colon,
    /// A comma or the closing bracket.
    CommaOrClose,
    /// A digit.
    Digit,
    /// The rest of `true`, `false` or `null`.
    Literal,
    /// A character of a string, or its closing quote.
    Character,
    /// One of `"\/bfnrtu`, with four hexadecimal digits after `u`.
    Escape,
    /// A low surrogate after a high one, and none elsewhere.
    Surrogate,
    /// No deeper nesting.
    Shallower,
}

/// The kinds of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// `"..."`
    String,
    /// A number that is no integer from 0 to 2^64 - 1.
    Number,
    /// An integer from 0 to 2^64 - 1.
    Integer,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "a JSON value",
            Self::KeyOrClose => "a key or '}'",
            Self::Key => "a key",
            Self::Colon => "':'",
            Self::CommaOrClose => "',' or a closing bracket",
            Self::Digit => "a digit",
            Self::Literal => "true, false or null",
            Self::Character => "a character of the string or its closing quote",
            Self::Escape => "an escape of JSON",
            Self::Surrogate => "surrogates in pairs",
            Self::Shallower => "at most 127 open brackets",
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Number => "a number that is no such integer",
            Self::Integer => "an integer",
            Self::Bool => "a truth value",
            Self::Null => "null",
        })
    }
}
