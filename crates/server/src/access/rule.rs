//! What an endpoint asks of its callers. Each endpoint is registered with one.

use super::Scope;

/// Which callers an endpoint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone, also without a key.
    Open,
    /// Those whose key has this scope.
    Needs(Scope),
}

/// Where an endpoint finds the queues that a request is about, which a key for some queues has to be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queues {
    /// It is about no queue.
    None,
    /// The parameter `name` of its path is the queue.
    InPath,
    /// The parameter `id` of its path is a job, which is in a queue.
    OfJobInPath,
    /// The parameter `queue` of the query is the queue. A key for some queues has to name one.
    InQuery,
    /// The handler checks the queues, or leaves out what belongs to others.
    ByHandler,
    /// It is about all queues, or about the server. A key for some queues is refused.
    All,
}

/// What an endpoint asks of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) access: Access,
    pub(crate) queues: Queues,
}

impl Rule {
    pub(super) const fn needs(scope: Scope, queues: Queues) -> Self {
        Self { access: Access::Needs(scope), queues }
    }
}

/// Everyone may call it.
pub(crate) const OPEN: Rule = Rule { access: Access::Open, queues: Queues::None };

/// It enqueues jobs, or cancels them.
pub(crate) const fn enqueue(queues: Queues) -> Rule {
    Rule::needs(Scope::Enqueue, queues)
}

/// Workers call it.
pub(crate) const fn work(queues: Queues) -> Rule {
    Rule::needs(Scope::Work, queues)
}

/// It changes nothing.
pub(crate) const fn read(queues: Queues) -> Rule {
    Rule::needs(Scope::Read, queues)
}

/// It changes nothing, and shows what is for operators only.
pub(crate) const fn inspect() -> Rule {
    Rule::needs(Scope::Admin, Queues::All)
}

/// Operators call it, to change something.
pub(crate) const fn admin(queues: Queues) -> Rule {
    Rule::needs(Scope::Admin, queues)
}
