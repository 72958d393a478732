//! All tests of the front ends in one binary, so that they are linked once and run side by side.

mod common;
mod fuzz;
mod lowering;
mod messages;
mod murphi;
mod murphi_models;
mod promela;
mod promela_fuzz;
mod promela_models;
mod semantics;
