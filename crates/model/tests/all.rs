//! All tests of the executors in one binary, so that they are linked once and run side by side.

mod agree;
mod choices;
mod reduce;
mod semantics;
