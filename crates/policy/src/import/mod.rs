//! Importers for the systems that people migrate from.
