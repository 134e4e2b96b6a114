//! The evaluation of expressions, within a budget.

use super::ast::{Binary, Comprehension, Expr, Id, Literal, Tree};
use super::functions;
use super::operators;
use super::value::{Text, Val};
use redrive_policy::Moment;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How much one evaluation may do: nodes that are evaluated, elements and bytes that are looked at or made.
pub(crate) const BUDGET: u64 = 1_000_000;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// It cannot be evaluated.
    Evaluation(String),
    /// It has a value, which is not one of JSON.
    Unrepresentable(String),
}

/// A fault of evaluation.
pub(crate) fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Evaluation(message.into()))
}

/// What an expression can see.
pub(crate) struct Roots<'a> {
    pub(crate) values: BTreeMap<&'static str, Val<'a>>,
    /// When the construct was entered that the expression belongs to.
    pub(crate) pin: Moment,
    /// What time it is.
    pub(crate) now: Moment,
}

pub(crate) struct Evaluation<'a, 'r> {
    tree: &'a Tree,
    pub(crate) roots: &'r Roots<'a>,
    locals: Vec<(Arc<str>, Val<'a>)>,
    left: u64,
}

const TYPES: [&str; 10] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

impl<'a, 'r> Evaluation<'a, 'r> {
    pub(crate) const fn new(tree: &'a Tree, roots: &'r Roots<'a>) -> Self {
        Self { tree, roots, locals: Vec::new(), left: BUDGET }
    }

    /// Takes from the budget.
    pub(crate) fn spend(&mut self, cost: usize) -> Result<(), Fault> {
        match self.left.checked_sub(cost as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => fault(format!("the expression takes more than {BUDGET} operations; work on less data at once")),
        }
    }

    pub(crate) fn run(&mut self) -> Result<Val<'a>, Fault> {
        self.eval(self.tree.root)
    }

    fn eval(&mut self, id: Id) -> Result<Val<'a>, Fault> {
        self.spend(1)?;
        let tree = self.tree;
        match &tree.nodes[id as usize] {
            Expr::Literal(literal) => Ok(value_of(literal)),
            Expr::Identifier(name) => self.identifier(name),
            Expr::Select { of, field } => self.select(*of, field),
            Expr::Has { of, field } => {
                let value = self.eval(*of)?;
                if value.map_len().is_none() {
                    return fault(format!("has() looks for {field:?} in a {}, not in a map", value.type_name()));
                }
                Ok(Val::Bool(value.member(field).is_some()))
            }
            Expr::Index { of, at } => {
                let (of, at) = (self.eval(*of)?, self.eval(*at)?);
                operators::index(&of, &at)
            }
            Expr::Call { function, on, arguments, pattern } => {
                let mut values = Vec::with_capacity(arguments.len() + 1);
                for id in on.iter().chain(arguments) {
                    values.push(self.eval(*id)?);
                }
                functions::call(self, function, values, pattern.as_deref())
            }
            Expr::List(items) => {
                let items = items.iter().map(|id| self.eval(*id)).collect::<Result<Vec<_>, _>>()?;
                Ok(Val::List(Rc::new(items)))
            }
            Expr::Map(members) => self.map(members),
            Expr::Not(of) => match self.eval(*of)? {
                Val::Bool(flag) => Ok(Val::Bool(!flag)),
                other => fault(format!("! needs a bool, not a {}", other.type_name())),
            },
            Expr::Negate(of) => operators::negate(&self.eval(*of)?),
            Expr::Binary(operator, left, right) => self.binary(*operator, *left, *right),
            Expr::And(left, right) => self.logic(*left, *right, false),
            Expr::Or(left, right) => self.logic(*left, *right, true),
            Expr::Conditional(condition, then, otherwise) => match self.eval(*condition)? {
                Val::Bool(true) => self.eval(*then),
                Val::Bool(false) => self.eval(*otherwise),
                other => fault(format!("the condition of ?: is a {}, not a bool", other.type_name())),
            },
            Expr::Each { kind, over, name, filter, body } => self.each(*kind, *over, name, *filter, *body),
        }
    }

    fn identifier(&mut self, name: &str) -> Result<Val<'a>, Fault> {
        if let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| **local == *name) {
            return Ok(value.clone());
        }
        if let Some(value) = self.roots.values.get(name) {
            return Ok(value.clone());
        }
        match TYPES.iter().find(|known| **known == name) {
            Some(known) => Ok(Val::Type(known)),
            None => fault(format!("there is no {name:?} here")),
        }
    }

    fn select(&mut self, of: Id, field: &str) -> Result<Val<'a>, Fault> {
        if let Some(known) = self.qualified(of, field) {
            return Ok(Val::Type(known));
        }
        let value = self.eval(of)?;
        match value.member(field) {
            Some(member) => Ok(member),
            None if value.map_len().is_some() => fault(format!("there is no member {field:?}; has() asks for it")),
            None => fault(format!("{field:?} is a member of a {}, which has none", value.type_name())),
        }
    }

    /// `google.protobuf.Timestamp` and its sibling, which are names of types.
    fn qualified(&self, of: Id, field: &str) -> Option<&'static str> {
        let Expr::Select { of: outer, field: middle } = &self.tree.nodes[of as usize] else { return None };
        let Expr::Identifier(root) = &self.tree.nodes[*outer as usize] else { return None };
        match (&**root, &**middle, field) {
            ("google", "protobuf", "Timestamp") => Some("google.protobuf.Timestamp"),
            ("google", "protobuf", "Duration") => Some("google.protobuf.Duration"),
            _ => None,
        }
    }

    fn map(&mut self, members: &[(Id, Id)]) -> Result<Val<'a>, Fault> {
        let mut map = BTreeMap::new();
        for (key, value) in members {
            let key = self.eval(*key)?;
            let Some(known) = key.key().filter(|_| !matches!(key, Val::Double(_))) else {
                return fault(format!("a {} cannot be the key of a map", key.type_name()));
            };
            if map.insert(known, self.eval(*value)?).is_some() {
                return fault("the map has a key twice");
            }
        }
        Ok(Val::Map(Rc::new(map)))
    }

    fn binary(&mut self, operator: Binary, left: Id, right: Id) -> Result<Val<'a>, Fault> {
        let (left, right) = (self.eval(left)?, self.eval(right)?);
        match operator {
            Binary::Equal => Ok(Val::Bool(self.equal(&left, &right)?)),
            Binary::NotEqual => Ok(Val::Bool(!self.equal(&left, &right)?)),
            Binary::In => self.is_in(&left, &right).map(Val::Bool),
            Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual => {
                operators::compare(operator, &left, &right)
            }
            Binary::Add => {
                self.spend(operators::joined_len(&left, &right))?;
                operators::add(left, right)
            }
            Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => {
                operators::arithmetic(operator, &left, &right)
            }
        }
    }

    pub(crate) fn equal(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<bool, Fault> {
        left.equals(right, &mut || self.spend(1))
    }

    fn is_in(&mut self, wanted: &Val<'a>, within: &Val<'a>) -> Result<bool, Fault> {
        if within.map_len().is_some() {
            return Ok(wanted.key().is_some_and(|key| within.get(&key).is_some()));
        }
        let Some(length) = within.list_len() else {
            return fault(format!("\"in\" looks into a list or a map, not into a {}", within.type_name()));
        };
        for element in (0..length).filter_map(|at| within.element(at)) {
            if self.equal(wanted, &element)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `&&` (which `false` decides) and `||` (which `true` decides). A side that decides absorbs a fault of the other.
    fn logic(&mut self, left: Id, right: Id, decides: bool) -> Result<Val<'a>, Fault> {
        let truth = |value: Result<Val<'a>, Fault>| match value? {
            Val::Bool(flag) => Ok(flag),
            other => fault(format!("&& and || need bools, not a {}", other.type_name())),
        };
        let left = truth(self.eval(left));
        if left == Ok(decides) {
            return Ok(Val::Bool(decides));
        }
        let right = truth(self.eval(right));
        if right == Ok(decides) {
            return Ok(Val::Bool(decides));
        }
        left?;
        right.map(Val::Bool)
    }

    fn each(
        &mut self,
        kind: Comprehension,
        over: Id,
        name: &Arc<str>,
        filter: Option<Id>,
        body: Id,
    ) -> Result<Val<'a>, Fault> {
        let over = self.eval(over)?;
        let elements = match (over.list_len(), over.keys()) {
            (Some(length), _) => (0..length).filter_map(|at| over.element(at)).collect(),
            (None, Some(keys)) => keys,
            (None, None) => return fault(format!("the macro goes over a list or a map, not a {}", over.type_name())),
        };
        self.spend(elements.len())?;
        let mut run = Run { kind, made: Vec::new(), matches: 0, first_fault: None };
        for element in elements {
            self.locals.push((Arc::clone(name), element.clone()));
            let goes_on = self.iteration(&mut run, element, filter, body);
            self.locals.pop();
            if let Some(decided) = goes_on? {
                return Ok(Val::Bool(decided));
            }
        }
        run.end()
    }

    /// One element. Returns the value where it is decided.
    fn iteration(
        &mut self,
        run: &mut Run<'a>,
        element: Val<'a>,
        filter: Option<Id>,
        body: Id,
    ) -> Result<Option<bool>, Fault> {
        let flag = |value: Val<'a>| match value {
            Val::Bool(flag) => Ok(flag),
            other => fault(format!("the condition of a macro is a {}, not a bool", other.type_name())),
        };
        if let Some(filter) = filter
            && !self.eval(filter).and_then(flag)?
        {
            return Ok(None);
        }
        match run.kind {
            Comprehension::Map => run.made.push(self.eval(body)?),
            Comprehension::Filter => {
                if self.eval(body).and_then(flag)? {
                    run.made.push(element);
                }
            }
            Comprehension::ExistsOne => run.matches += usize::from(self.eval(body).and_then(flag)?),
            Comprehension::All | Comprehension::Exists => {
                let decides = run.kind == Comprehension::Exists;
                match self.eval(body).and_then(flag) {
                    Ok(found) if found == decides => return Ok(Some(decides)),
                    Ok(_) => {}
                    // The budget is not a fault that another element can make good.
                    Err(fault) if self.left == 0 => return Err(fault),
                    Err(fault) => run.first_fault = run.first_fault.take().or(Some(fault)),
                }
            }
        }
        Ok(None)
    }
}

/// A macro on its way.
struct Run<'a> {
    kind: Comprehension,
    made: Vec<Val<'a>>,
    matches: usize,
    first_fault: Option<Fault>,
}

impl<'a> Run<'a> {
    fn end(self) -> Result<Val<'a>, Fault> {
        match (self.kind, self.first_fault) {
            (_, Some(fault)) => Err(fault),
            (Comprehension::Map | Comprehension::Filter, None) => Ok(Val::List(Rc::new(self.made))),
            (Comprehension::ExistsOne, None) => Ok(Val::Bool(self.matches == 1)),
            (Comprehension::All, None) => Ok(Val::Bool(true)),
            (Comprehension::Exists, None) => Ok(Val::Bool(false)),
        }
    }
}

fn value_of(literal: &Literal) -> Val<'_> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(flag) => Val::Bool(*flag),
        Literal::Int(number) => Val::Int(*number),
        Literal::Uint(number) => Val::Uint(*number),
        Literal::Double(number) => Val::Double(*number),
        Literal::String(text) => Val::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Val::Bytes(Rc::from(&**bytes)),
    }
}
