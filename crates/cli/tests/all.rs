//! All tests of the program in one binary, so that they are linked once and run side by side. Those that measure what all
//! children of a process take have binaries of their own.

mod common {
    pub mod corpus;
    pub mod files;
    pub mod report;
    pub mod run;
}

mod bad_input;
mod compare;
mod crosscheck;
mod disk;
mod files;
mod generate;
mod habits;
mod huffman;
mod interrupt;
mod json;
mod kernel;
mod layers_oracle;
mod limits;
mod lossy;
mod lts;
mod murphi;
mod oracle;
mod plan;
mod resume;
mod room;
mod static_code;
mod strategies;
mod sweep;
mod tidy;
mod traces;
mod trail;
mod unreached;
mod workers;
