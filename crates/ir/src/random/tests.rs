use super::*;
use crate::verify::verify;

#[test]
fn random_systems_are_verified_and_repeatable() {
    for size in [Size::SMALL, Size::MEDIUM, Size::LARGE] {
        for seed in 0..400 {
            let system = random_system(seed, size);
            verify(&system).unwrap_or_else(|flaws| panic!("seed {seed}: {flaws:?}"));
            assert_eq!(system, random_system(seed, size));
        }
    }
}

#[test]
fn every_construct_turns_up() {
    let systems: Vec<System> = (0..300).map(|seed| random_system(seed, Size::MEDIUM)).collect();
    let text = format!("{systems:?}");
    let names = "Neg Not BitNot Add Sub Mul Div Rem BitAnd BitOr BitXor Shl Shr Eq Ne Lt Le Gt Ge And Or Const( Read( \
        Unary( Binary( Select( Wrap{ Var( Temp( Reference( Call( Field( Index( Assign{ Copy{ Reset( Sort( If{ Block( Loop{ Break(0) Break(1) \
        Assert{ Fault( Discard Trap Control Receive Send Invariant Goal Never Stuck{accepted:None \
        Stuck{accepted:Some Stuttering Vanish Absorb exclusive:Some Record( Array{ names:Some";
    let text = text.replace(' ', "");
    for name in names.split_whitespace() {
        assert!(text.contains(name), "{name}");
    }
    let commands = || systems.iter().flat_map(|system| &system.commands);
    assert!(commands().any(|command| command.at.len() == 2));
    assert!(commands().any(|command| command.at.is_empty() && command.choices.len() == 2));
    assert!(commands().any(|command| command.rank > 0));
    assert!(commands().any(|command| !command.prelude.is_empty()));
    assert!(commands().any(|command| command.temps.iter().any(|(_, ty)| ty.as_scalar().is_none())));
    assert!(systems.iter().any(|system| system.starts.len() > 1));
    assert!(systems.iter().any(|system| system.processes.is_empty()));
    let calls = |stmts: &[Stmt]| {
        let mut all = Vec::new();
        crate::walk::stmt_calls(stmts, &mut |call| all.push(call.clone()));
        all
    };
    assert!(commands().any(|command| !calls(&command.prelude).is_empty()));
    let of_bodies: Vec<_> = commands().flat_map(|command| calls(&command.body)).collect();
    assert!(of_bodies.iter().any(|call| !call.references.is_empty() && !call.outputs.is_empty()));
    let procedures = || systems.iter().flat_map(|system| &system.procedures);
    assert!(procedures().any(|procedure| !calls(&procedure.body).is_empty()));
    let inside = |system: &System| {
        let own = |(index, procedure): (usize, &Procedure)| {
            calls(&procedure.body).iter().any(|call| call.procedure.index() == index)
        };
        system.procedures.iter().enumerate().any(own)
    };
    assert!(systems.iter().any(inside), "some call themselves");
    assert!(of_bodies.len() > 50);
}
