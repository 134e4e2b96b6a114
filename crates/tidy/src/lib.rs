//! Checks on the files of this repository, as ordinary tests: layout, leftover marks, links, promises and words.
//!
//! `cargo test -p redrive-tidy` runs them within seconds. Each finding names the file, the line and the way out.

#[cfg(test)]
mod crates;
#[cfg(test)]
mod layout;
#[cfg(test)]
mod links;
#[cfg(test)]
mod marks;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod promises;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod words;
