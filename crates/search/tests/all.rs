//! All tests of searches in one binary, so that they are linked once and run side by side.

mod common {
    pub mod crew;
    pub mod witness;
}

mod between;
mod climb;
mod guided;
mod layers;
mod nodes;
mod observe;
mod oracle;
mod presets;
mod resume;
mod shortage;
mod snapshots;
mod walk;
mod workers;
