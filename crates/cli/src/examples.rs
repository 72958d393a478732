//! Examples that the help shows, one text per command.

pub const EXAMPLES: &str = "\
Examples:
  plimsoll check model.dve
  plimsoll check model.dve --memory 2G --find 'x == 3 && P.critical'
  plimsoll simulate model.dve --seed 7 --steps 30
  plimsoll COMMAND --help

Exit codes:
  0 holds   10 deadlock   11 assertion or error in the model   12 invariant violated or goal found
  20 unknown (memory, disk, time, ... ran out)   21 holds unless hash collision   22 holds to a depth
  2 wrong usage   3 error in the model text   70 internal error";

pub const CHECK_EXAMPLES: &str = "\
Examples:
  plimsoll check model.dve                              deadlocks, errors, assertions
  plimsoll check model.dve --find 'P0.critical && P1.critical'
  plimsoll check model.dve --invariant 'count <= 4' --trace bad.json
  plimsoll check model.dve --memory 1G --disk 20G --time 1h
  plimsoll check model.dve --time 8h --checkpoint tonight; plimsoll resume tonight
  plimsoll check model.dve --find 'P0.critical && P1.critical' --strategy best
  plimsoll check model.dve --strategy swarm --time 10m --workers 4
  plimsoll check model.dve --json --keep-going --no-deadlock";

pub const RESUME_EXAMPLES: &str = "\
Examples:
  plimsoll check model.dve --checkpoint run --time 8h   ends with `unknown: time`, and leaves a checkpoint
  plimsoll resume run                                   goes on, to the end
  plimsoll resume run --memory 8G --workers 8           with more of something
The model, what is looked for, how states are held, and the budget but for --time are as before unless they are given.";

pub const GENERATE_EXAMPLES: &str = "\
Examples:
  plimsoll generate model.dve --output model.aut
  plimsoll generate small.dve --output small.dot        for Graphviz: dot -Tsvg small.dot
  plimsoll generate model.pml --output model.lts --memory 4G --disk 50G
  plimsoll generate model.dve --output model.lts --strategy cache:LRU --exact --disk 20G";

pub const CONVERT_EXAMPLES: &str = "\
Examples:
  plimsoll convert model.lts model.aut
  plimsoll convert model.aut model.lts                  a fifth of the size or less
  plimsoll convert model.lts - --hide '^i|internal' | head";

pub const LTS_EXAMPLES: &str = "\
Examples:
  plimsoll lts info model.lts
  plimsoll lts compare one.lts other.aut
  plimsoll lts minimise model.lts --output small.lts --equivalence branching --hide 'internal'";

pub const LTS_INFO_EXAMPLES: &str = "\
Examples:
  plimsoll lts info model.lts";

pub const LTS_COMPARE_EXAMPLES: &str = "\
Examples:
  plimsoll lts compare one.lts other.aut                exit code 0: equivalent, 1: different
  plimsoll lts compare spec.aut model.lts --equivalence branching --hide 'internal'";

pub const LTS_MINIMISE_EXAMPLES: &str = "\
Examples:
  plimsoll lts minimise model.lts --output small.aut
  plimsoll lts minimise model.lts -o small.dot --equivalence branching --hide '^(skip|goto)'";

pub const SIMULATE_EXAMPLES: &str = "\
Examples:
  plimsoll simulate model.dve                           a random walk, different each time
  plimsoll simulate model.dve --seed 7 --steps 100      the same walk each time
  plimsoll simulate model.dve --interactive             choose every step yourself";

pub const REPLAY_EXAMPLES: &str = "\
Examples:
  plimsoll check model.dve --trace bad.json
  plimsoll replay model.dve bad.json
  plimsoll check model.dve --json > report.json; plimsoll replay model.dve report.json
  plimsoll replay model.pml model.pml.trail --msc chart.svg";

pub const INFO_EXAMPLES: &str = "\
Examples:
  plimsoll info model.dve
  plimsoll info model.dve --ir > model.ir; plimsoll check model.ir";

pub const PLAN_EXAMPLES: &str = "\
Examples:
  plimsoll plan model.dve
  plimsoll plan model.pml --memory 2G --disk 50G        which of them would be enough?
  plimsoll plan model.m --sample-time 30s --json        a longer sample tells more";

pub const COMPARE_EXAMPLES: &str = "\
Examples:
  plimsoll compare corpus                               corpus/counts.csv, models in corpus/models or corpus
  plimsoll compare corpus --order both --max-states 1000000 --filter peterson
  plimsoll compare corpus --executor interp --jobs 4
  plimsoll compare models --oracle rumur --time 30s     no table: ask Rumur about every Murphi model";

pub const SWEEP_EXAMPLES: &str = "\
Examples:
  plimsoll sweep model.dve --out results                every strategy, 10 % to 100 % of the states, both orders
  plimsoll sweep corpus --out results --min-states 10000 --max-states 1000000 --jobs 4
  plimsoll sweep model.dve --out results --strategy cache:SC --strategy sleep+cache:LFU --sizes 5,10..50 --orders bfs,dfs
  Run it again with the same folder to go on after an interruption, or with more strategies or sizes to add them.";

pub const CROSSCHECK_EXAMPLES: &str = "\
Examples:
  plimsoll crosscheck model.dve                         every strategy, order, store, executor; several workers
  plimsoll crosscheck model.pml -- -D N=3 --find 'x == 3'
                                                        what comes after -- is for `check`
  plimsoll crosscheck model.m --max-states 500000 --jobs 4 --json";

pub const STRATEGIES_EXAMPLES: &str = "\
Examples:
  plimsoll strategies
  plimsoll check model.dve --strategy cover --cache-size 20%
  plimsoll check model.dve --strategy sleep+cache:LFU --cache-size 600
  plimsoll check model.dve --cache 'MFU:25%,LRU:75%' --cache-size 64M";

pub const MAN_EXAMPLES: &str = "\
Examples:
  plimsoll man | man -l -
  plimsoll man ~/.local/share/man/man1";

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  plimsoll completions bash > plimsoll.bash
  plimsoll completions zsh > _plimsoll";
