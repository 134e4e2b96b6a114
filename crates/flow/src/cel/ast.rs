//! The tree of an expression, in one vector: deep trees are neither built nor dropped recursively.

use regex::Regex;
use std::sync::Arc;

/// The place of a node in its tree.
pub(crate) type Id = u32;

#[derive(Clone, Debug)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

/// A macro over the elements of a list or the keys of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comprehension {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Literal),
    Identifier(Arc<str>),
    Select { of: Id, field: Arc<str> },
    Has { of: Id, field: Arc<str> },
    Index { of: Id, at: Id },
    Call { function: Arc<str>, on: Option<Id>, arguments: Vec<Id>, pattern: Option<Arc<Regex>> },
    List(Vec<Id>),
    Map(Vec<(Id, Id)>),
    Not(Id),
    Negate(Id),
    Binary(Binary, Id, Id),
    And(Id, Id),
    Or(Id, Id),
    Conditional(Id, Id, Id),
    Each { kind: Comprehension, over: Id, name: Arc<str>, filter: Option<Id>, body: Id },
}

/// A tree and its root.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Expr>,
    pub(crate) root: Id,
}

impl Expr {
    /// What it is made of.
    pub(crate) fn children(&self) -> Box<dyn Iterator<Item = Id> + '_> {
        match self {
            Self::Literal(_) | Self::Identifier(_) => Box::new(std::iter::empty()),
            Self::Select { of, .. } | Self::Has { of, .. } | Self::Not(of) | Self::Negate(of) => {
                Box::new([*of].into_iter())
            }
            Self::Index { of, at } => Box::new([*of, *at].into_iter()),
            Self::Call { on, arguments, .. } => Box::new(on.iter().chain(arguments).copied()),
            Self::List(items) => Box::new(items.iter().copied()),
            Self::Map(members) => Box::new(members.iter().flat_map(|(key, value)| [*key, *value])),
            Self::Binary(_, left, right) | Self::And(left, right) | Self::Or(left, right) => {
                Box::new([*left, *right].into_iter())
            }
            Self::Conditional(a, b, c) => Box::new([*a, *b, *c].into_iter()),
            Self::Each { over, filter, body, .. } => {
                Box::new([Some(*over), *filter, Some(*body)].into_iter().flatten())
            }
        }
    }
}
