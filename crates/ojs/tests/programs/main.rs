//! Programs, interrupted at every write.

mod workflows;
