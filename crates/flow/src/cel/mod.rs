//! CEL: the profile of MWL. [`Expression`] is read once and evaluated as often as its construct is executed.

mod ast;
mod eval;
mod functions;
mod json;
mod lexer;
mod operators;
mod parser;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod value;

use ast::{Expr, Tree};
pub(crate) use eval::{Fault, Roots};
use serde_json::Value;
pub(crate) use value::Val;

/// An expression that was read.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    tree: Tree,
    text: Box<str>,
}

/// What is wrong with an expression, and at which byte.
pub(crate) use lexer::SyntaxFault;

impl Expression {
    /// Reads the text between the delimiters.
    pub(crate) fn read(text: &str) -> Result<Self, SyntaxFault> {
        Ok(Self { tree: parser::parse(text)?, text: text.trim().into() })
    }

    /// Its text, for people.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it mentions a root, which then has to be there.
    pub(crate) fn mentions(&self, root: &str) -> bool {
        self.tree.nodes.iter().any(|node| matches!(node, Expr::Identifier(name) if **name == *root))
    }

    /// Its value as data of the flow.
    pub(crate) fn evaluate(&self, roots: &Roots<'_>) -> Result<Value, Fault> {
        let mut evaluation = eval::Evaluation::new(&self.tree, roots);
        let value = evaluation.run()?;
        json::to_json(&value, &mut |cost| evaluation.spend(cost))
    }
}

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// The text of an expression, where a string is one: a single pair of delimiters is around all of it.
pub(crate) fn embedded(text: &str) -> Option<&str> {
    let body = text.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    let mut quote = None;
    let mut closed = false;
    let bytes = body.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(_), b'\\') => at += 1,
            (Some(open), byte) if byte == open => quote = None,
            (None, byte @ (b'"' | b'\'')) => quote = Some(byte),
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => closed = true,
            // Two pairs with something between them: text.
            (None, b'{') if closed && bytes.get(at + 1) == Some(&b'{') => return None,
            _ => {}
        }
        at += 1;
    }
    Some(body)
}
