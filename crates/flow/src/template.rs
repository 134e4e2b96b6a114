//! Values of a definition with expressions at their leaves.

use crate::cel::{Expression, Fault, Roots};
use crate::json::MAX_DEPTH;
use crate::result::depth;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A literal, an expression, or an array or object with expressions somewhere inside.
#[derive(Clone, Debug)]
pub(crate) enum Template {
    Literal(Value),
    Expression(Arc<Expression>),
    Array(Vec<Template>),
    Object(Vec<(String, Template)>),
}

impl Template {
    pub(crate) fn array(items: Vec<Self>) -> Self {
        if items.iter().all(Self::is_literal) {
            return Self::Literal(Value::Array(items.into_iter().map(Self::literal).collect()));
        }
        Self::Array(items)
    }

    pub(crate) fn object(members: Vec<(String, Self)>) -> Self {
        if members.iter().all(|(_, member)| member.is_literal()) {
            let members = members.into_iter().map(|(name, member)| (name, member.literal()));
            return Self::Literal(Value::Object(members.collect()));
        }
        Self::Object(members)
    }

    const fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    fn literal(self) -> Value {
        match self {
            Self::Literal(value) => value,
            _ => Value::Null,
        }
    }

    /// Whether an expression in it mentions a root.
    pub(crate) fn mentions(&self, root: &str) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Expression(expression) => expression.mentions(root),
            Self::Array(items) => items.iter().any(|item| item.mentions(root)),
            Self::Object(members) => members.iter().any(|(_, member)| member.mentions(root)),
        }
    }

    pub(crate) fn evaluate(&self, roots: &Roots<'_>) -> Result<Value, Fault> {
        let value = self.part(roots)?;
        if matches!(self, Self::Array(_) | Self::Object(_)) && depth(&value) > MAX_DEPTH {
            let message = format!("the value has more than {MAX_DEPTH} arrays and objects inside of each other");
            return Err(Fault::Unrepresentable(message));
        }
        Ok(value)
    }

    fn part(&self, roots: &Roots<'_>) -> Result<Value, Fault> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Expression(expression) => expression.evaluate(roots),
            Self::Array(items) => {
                Ok(Value::Array(items.iter().map(|item| item.part(roots)).collect::<Result<_, _>>()?))
            }
            Self::Object(members) => {
                let members = members.iter().map(|(name, member)| Ok((name.clone(), member.part(roots)?)));
                Ok(Value::Object(members.collect::<Result<Map<_, _>, Fault>>()?))
            }
        }
    }
}
