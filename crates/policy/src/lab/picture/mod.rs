//! Pictures of schedules and simulations.
