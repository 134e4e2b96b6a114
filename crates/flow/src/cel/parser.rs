//! The grammar of CEL.

use super::ast::{Binary, Comprehension, Expr, Id, Literal, Tree};
use super::functions::is_function;
use super::lexer::{SyntaxFault, Token, TokenKind, fault, tokens};
use regex::Regex;
use std::sync::Arc;

/// How deep a tree may be. Evaluation goes down it recursively.
const MAX_DEPTH: u32 = 120;
/// How long an expression may be.
const MAX_LENGTH: usize = 32_768;
/// How much memory the automaton of a regular expression may take.
const MAX_PATTERN: usize = 1 << 20;

const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

pub(crate) fn parse(text: &str) -> Result<Tree, SyntaxFault> {
    if text.len() > MAX_LENGTH {
        return fault(0, format!("the expression has {} bytes; at most {MAX_LENGTH} are allowed", text.len()));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, nodes: Vec::new(), depths: Vec::new(), nesting: 0 };
    let root = parser.expression()?;
    match parser.peek() {
        TokenKind::End => Ok(Tree { nodes: parser.nodes, root }),
        other => fault(parser.place(), format!("{} is not expected here", shown(other))),
    }
}

fn shown(token: &TokenKind) -> String {
    match token {
        TokenKind::End => "the end of the expression".to_owned(),
        TokenKind::Symbol(symbol) => format!("\"{symbol}\""),
        TokenKind::Identifier(name) => format!("\"{name}\""),
        TokenKind::String(_) | TokenKind::Bytes(_) => "a string".to_owned(),
        TokenKind::Int(_) | TokenKind::IntLimit | TokenKind::Uint(_) | TokenKind::Double(_) => "a number".to_owned(),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nodes: Vec<Expr>,
    /// The depth of each node.
    depths: Vec<u32>,
    nesting: u32,
}

type Parsed = Result<Id, SyntaxFault>;

impl Parser {
    fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn place(&self) -> usize {
        self.tokens[self.at].at
    }

    fn next(&mut self) -> TokenKind {
        let token = self.tokens[self.at].kind.clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let takes = matches!(self.peek(), TokenKind::Symbol(found) if *found == symbol);
        if takes {
            self.next();
        }
        takes
    }

    fn expect(&mut self, symbol: &str) -> Result<(), SyntaxFault> {
        if self.takes(symbol) {
            return Ok(());
        }
        fault(self.place(), format!("\"{symbol}\" is expected, not {}", shown(self.peek())))
    }

    fn add(&mut self, node: Expr) -> Parsed {
        let depth = 1 + node.children().map(|child| self.depths[child as usize]).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            return fault(self.place(), format!("the expression is nested more than {MAX_DEPTH} levels deep"));
        }
        let id = Id::try_from(self.nodes.len()).unwrap_or(Id::MAX);
        self.nodes.push(node);
        self.depths.push(depth);
        Ok(id)
    }

    /// Keeps the parser itself from going deeper than the trees that it may build.
    fn nested(&mut self, read: fn(&mut Self) -> Parsed) -> Parsed {
        if self.nesting == MAX_DEPTH {
            return fault(self.place(), format!("the expression is nested more than {MAX_DEPTH} levels deep"));
        }
        self.nesting += 1;
        let parsed = read(self);
        self.nesting -= 1;
        parsed
    }

    fn expression(&mut self) -> Parsed {
        self.nested(|parser| {
            let condition = parser.or()?;
            if !parser.takes("?") {
                return Ok(condition);
            }
            let then = parser.or()?;
            parser.expect(":")?;
            let otherwise = parser.expression()?;
            parser.add(Expr::Conditional(condition, then, otherwise))
        })
    }

    fn or(&mut self) -> Parsed {
        let mut left = self.and()?;
        while self.takes("||") {
            let right = self.and()?;
            left = self.add(Expr::Or(left, right))?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.relation()?;
        while self.takes("&&") {
            let right = self.relation()?;
            left = self.add(Expr::And(left, right))?;
        }
        Ok(left)
    }

    fn relation(&mut self) -> Parsed {
        let mut left = self.sum()?;
        loop {
            let operator = match self.peek() {
                TokenKind::Symbol("==") => Binary::Equal,
                TokenKind::Symbol("!=") => Binary::NotEqual,
                TokenKind::Symbol("<") => Binary::Less,
                TokenKind::Symbol("<=") => Binary::LessOrEqual,
                TokenKind::Symbol(">") => Binary::Greater,
                TokenKind::Symbol(">=") => Binary::GreaterOrEqual,
                TokenKind::Identifier(word) if word == "in" => Binary::In,
                _ => return Ok(left),
            };
            self.next();
            let right = self.sum()?;
            left = self.add(Expr::Binary(operator, left, right))?;
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                TokenKind::Symbol("+") => Binary::Add,
                TokenKind::Symbol("-") => Binary::Subtract,
                _ => return Ok(left),
            };
            self.next();
            let right = self.product()?;
            left = self.add(Expr::Binary(operator, left, right))?;
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.nested(Self::unary)?;
        loop {
            let operator = match self.peek() {
                TokenKind::Symbol("*") => Binary::Multiply,
                TokenKind::Symbol("/") => Binary::Divide,
                TokenKind::Symbol("%") => Binary::Remainder,
                _ => return Ok(left),
            };
            self.next();
            let right = self.nested(Self::unary)?;
            left = self.add(Expr::Binary(operator, left, right))?;
        }
    }

    fn unary(&mut self) -> Parsed {
        if self.takes("!") {
            let inner = self.nested(Self::unary)?;
            return self.add(Expr::Not(inner));
        }
        if !self.takes("-") {
            return self.member();
        }
        let literal = match self.peek() {
            TokenKind::IntLimit => Some(Literal::Int(i64::MIN)),
            TokenKind::Int(number) => Some(Literal::Int(-number)),
            TokenKind::Double(number) => Some(Literal::Double(-number)),
            _ => None,
        };
        if let Some(literal) = literal {
            self.next();
            let number = self.add(Expr::Literal(literal))?;
            return self.members_of(number);
        }
        let inner = self.nested(Self::unary)?;
        self.add(Expr::Negate(inner))
    }

    fn member(&mut self) -> Parsed {
        let primary = self.primary()?;
        self.members_of(primary)
    }

    fn members_of(&mut self, mut of: Id) -> Parsed {
        loop {
            if self.takes("[") {
                let at = self.expression()?;
                self.expect("]")?;
                of = self.add(Expr::Index { of, at })?;
            } else if self.takes(".") {
                let place = self.place();
                let field = self.name()?;
                of = if self.takes("(") {
                    let arguments = self.list(")")?;
                    self.call(place, field, Some(of), arguments)?
                } else {
                    self.add(Expr::Select { of, field })?
                };
            } else {
                return Ok(of);
            }
        }
    }

    fn name(&mut self) -> Result<Arc<str>, SyntaxFault> {
        let place = self.place();
        match self.next() {
            TokenKind::Identifier(name) => Ok(name.into()),
            other => fault(place, format!("a name is expected, not {}", shown(&other))),
        }
    }

    fn list(&mut self, close: &str) -> Result<Vec<Id>, SyntaxFault> {
        let mut items = Vec::new();
        while !self.takes(close) {
            items.push(self.expression()?);
            if !self.takes(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn primary(&mut self) -> Parsed {
        let place = self.place();
        let literal = match self.next() {
            TokenKind::Int(number) => Literal::Int(number),
            TokenKind::Uint(number) => Literal::Uint(number),
            TokenKind::Double(number) => Literal::Double(number),
            TokenKind::String(text) => Literal::String(text.into()),
            TokenKind::Bytes(bytes) => Literal::Bytes(bytes.into()),
            TokenKind::IntLimit => return fault(place, "9223372036854775808 is too large for a signed integer"),
            TokenKind::Symbol("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            TokenKind::Symbol("[") => {
                let items = self.list("]")?;
                return self.add(Expr::List(items));
            }
            TokenKind::Symbol("{") => return self.map(),
            TokenKind::Symbol(".") => {
                let name = self.name()?;
                return self.identifier(place, name);
            }
            TokenKind::Identifier(name) => match name.as_str() {
                "null" => Literal::Null,
                "true" => Literal::Bool(true),
                "false" => Literal::Bool(false),
                _ => return self.identifier(place, name.into()),
            },
            other => return fault(place, format!("a value is expected, not {}", shown(&other))),
        };
        self.add(Expr::Literal(literal))
    }

    fn map(&mut self) -> Parsed {
        let mut members = Vec::new();
        while !self.takes("}") {
            let key = self.expression()?;
            self.expect(":")?;
            members.push((key, self.expression()?));
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        self.add(Expr::Map(members))
    }

    fn identifier(&mut self, place: usize, name: Arc<str>) -> Parsed {
        if RESERVED.contains(&&*name) || &*name == "in" {
            return fault(place, format!("\"{name}\" is a word of CEL and cannot be a name"));
        }
        if self.takes("(") {
            let arguments = self.list(")")?;
            return self.call(place, name, None, arguments);
        }
        self.add(Expr::Identifier(name))
    }

    fn call(&mut self, place: usize, function: Arc<str>, on: Option<Id>, arguments: Vec<Id>) -> Parsed {
        if on.is_none() && &*function == "has" {
            let field = match arguments.as_slice() {
                [argument] => self.nodes[*argument as usize].clone(),
                _ => return fault(place, "has() takes one argument"),
            };
            return match field {
                Expr::Select { of, field } => self.add(Expr::Has { of, field }),
                _ => fault(place, "has() takes a member such as vars.name"),
            };
        }
        if let Some(over) = on
            && let Some(kind) = comprehension(&function)
        {
            return self.each(place, kind, over, &arguments);
        }
        if !is_function(&function, on.is_some(), arguments.len()) {
            let called = if on.is_some() { format!("x.{function}") } else { function.to_string() };
            let (many, count) = (if arguments.len() == 1 { "" } else { "s" }, arguments.len());
            return fault(place, format!("there is no function {called}() with {count} argument{many}"));
        }
        let pattern = self.pattern(place, &function, on, &arguments)?;
        self.add(Expr::Call { function, on, arguments, pattern })
    }

    /// The compiled pattern of `matches`, where it is written out.
    fn pattern(
        &self,
        place: usize,
        function: &str,
        on: Option<Id>,
        arguments: &[Id],
    ) -> Result<Option<Arc<Regex>>, SyntaxFault> {
        let at = if on.is_some() { 0 } else { 1 };
        let Some(id) = arguments.get(at).filter(|_| function == "matches") else { return Ok(None) };
        let Expr::Literal(Literal::String(text)) = &self.nodes[*id as usize] else { return Ok(None) };
        match compiled(text) {
            Ok(pattern) => Ok(Some(Arc::new(pattern))),
            Err(message) => fault(place, message),
        }
    }

    fn each(&mut self, place: usize, kind: Comprehension, over: Id, arguments: &[Id]) -> Parsed {
        let (variable, filter, body) = match (kind, arguments) {
            (_, [name, body]) => (*name, None, *body),
            (Comprehension::Map, [name, filter, body]) => (*name, Some(*filter), *body),
            _ => return fault(place, "the macro takes a name and an expression"),
        };
        let Expr::Identifier(name) = self.nodes[variable as usize].clone() else {
            return fault(place, "the first argument of the macro is the name of a variable");
        };
        self.add(Expr::Each { kind, over, name, filter, body })
    }
}

fn comprehension(function: &str) -> Option<Comprehension> {
    Some(match function {
        "all" => Comprehension::All,
        "exists" => Comprehension::Exists,
        "exists_one" | "existsOne" => Comprehension::ExistsOne,
        "map" => Comprehension::Map,
        "filter" => Comprehension::Filter,
        _ => return None,
    })
}

/// A regular expression in linear time, as CEL asks for.
pub(crate) fn compiled(text: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(text)
        .size_limit(MAX_PATTERN)
        .build()
        .map_err(|_| format!("{text:?} is not a regular expression, or is too large"))
}
