//! Tests of parameters and their neighbourhoods.

use std::collections::BTreeSet;

use crate::parameter::{Categorical, Discrete, Factorization, Permutation, Splits};
use crate::{Parameter, Point, SearchSpace};
use num_bigint::BigUint;

const EXTENTS: [u64; 14] = [1, 2, 3, 7, 8, 12, 31, 49, 60, 64, 77, 100, 224, 509];

/// Parameters of every kind.
fn parameters() -> Vec<Parameter> {
    let mut all = vec![
        Parameter::new("none", Categorical::new(Vec::<String>::new())),
        Parameter::new("one", Categorical::new(["only"])),
        Parameter::new("tail", Categorical::new(["guard", "peel", "pad"])),
        Parameter::new("unroll", Discrete::new([16, 0, 4, 4, -1])),
        Parameter::new("nothing", Discrete::new([])),
        Parameter::new("order", Permutation::new(["i", "j", "k", "l"])),
        Parameter::new("no order", Permutation::new(Vec::<String>::new())),
    ];
    for extent in EXTENTS {
        for parts in 1..=3 {
            for splits in [Splits::Divisible, Splits::Covering] {
                let name = format!("{extent} in {parts}, {splits:?}");
                all.push(Parameter::new(name, Factorization::new(extent, parts, splits)));
            }
        }
    }
    all
}

#[test]
fn neighbours_are_symmetric_and_different() {
    for parameter in parameters() {
        for rank in 0..parameter.count() {
            let near = parameter.neighbours(rank);
            assert!(!near.contains(&rank), "{}: {rank}", parameter.name());
            for next in near {
                assert!(next < parameter.count());
                let back = parameter.neighbours(next).contains(&rank);
                assert!(back, "{}: {rank} -> {next}", parameter.name());
            }
        }
    }
}

#[test]
fn every_value_can_be_reached_from_every_other() {
    for parameter in parameters() {
        let mut reached = BTreeSet::from([0]);
        let mut ahead = vec![0];
        while let Some(rank) = ahead.pop() {
            for next in parameter.neighbours(rank) {
                if reached.insert(next) {
                    ahead.push(next);
                }
            }
        }
        assert_eq!(reached.len(), parameter.count() as usize, "{}", parameter.name());
    }
}

#[test]
fn directions_are_the_neighbours_and_end() {
    for parameter in parameters() {
        let directions = parameter.directions();
        for rank in 0..parameter.count() {
            let steps: BTreeSet<u32> =
                (0..directions).filter_map(|direction| parameter.step(rank, direction)).collect();
            let near: BTreeSet<u32> = parameter.neighbours(rank).into_iter().collect();
            assert_eq!(steps, near, "{}", parameter.name());
            let mut features = Vec::new();
            parameter.features(rank, &mut features);
            assert!(features.iter().all(|feature| feature.is_finite()), "{}", parameter.name());
        }
    }
}

#[test]
fn moves_of_a_space_change_one_parameter_and_can_be_undone() {
    let space = small();
    assert_eq!(space.points().count(), 10 * 6 * 3 * 2);
    for point in space.points() {
        for near in space.neighbours(&point) {
            let changed = point.ranks().iter().zip(near.ranks()).filter(|(a, b)| a != b).count();
            assert_eq!(changed, 1);
            assert!(space.neighbours(&near).contains(&point));
        }
        let steps = (0..space.directions()).filter_map(|direction| space.step(&point, direction));
        let steps: BTreeSet<Point> = steps.collect();
        assert_eq!(steps, space.neighbours(&point).into_iter().collect());
    }
    assert_eq!(space.direction(space.directions()), None);
}

#[test]
fn points_have_numbers_and_numbers_points() {
    let space = small();
    for (number, point) in space.points().enumerate() {
        let number = BigUint::from(number);
        assert_eq!(space.number(&point), number);
        assert_eq!(space.point(&number), Some(point));
    }
    assert_eq!(space.point(&space.size()), None);
    assert!(!space.contains(&Point::new([0, 0, 0])));
    assert!(!space.contains(&Point::new([10, 0, 0, 0])));
    let none = SearchSpace::new(Vec::new());
    assert_eq!(none.points().count(), 1);
    // Far beyond 64 bits.
    let huge = Parameter::new("tile", Factorization::new(720_720, 3, Splits::Divisible));
    let huge = SearchSpace::new(vec![huge; 12]);
    assert!(huge.size() > BigUint::from(u128::MAX));
    let last = huge.point(&(huge.size() - 1u32)).unwrap();
    assert_eq!(huge.number(&last), huge.size() - 1u32);
    assert_eq!(huge.successor(&last), None);
}

/// G-BFS paper, section 4: "484000, 899756 and 1589952" configurations with four, two and four
/// nested loops.
#[test]
fn gemm_has_as_many_tilings_as_the_paper_says() {
    for (extent, size) in [(512, 484_000u32), (1024, 899_756), (2048, 1_589_952)] {
        let split = |name, parts| {
            Parameter::new(name, Factorization::new(extent, parts, Splits::Divisible))
        };
        let space = SearchSpace::new(vec![split("m", 4), split("k", 2), split("n", 4)]);
        assert_eq!(space.size(), BigUint::from(size));
        assert_eq!(space.points().count(), size as usize);
    }
}

#[test]
fn parameters_survive_as_text_and_bad_ones_are_refused() {
    for parameter in parameters() {
        let text = serde_json::to_string(&parameter).unwrap();
        let back: Parameter = serde_json::from_str(&text).unwrap();
        assert_eq!(back, parameter);
        assert_eq!(back.directions(), parameter.directions());
    }
    let split =
        |fields: &str| format!(r#"{{"name":"t","domain":{{"kind":"factorization",{fields}}}}}"#);
    let good = r#""extent":4,"parts":2,"splits":"divisible","sizes":[1,2,4],"primes":[2]"#;
    assert!(
        serde_json::from_str::<Parameter>(&split(&format!(r#"{good},"values":[[2,2],[4,1]]"#)))
            .is_ok()
    );
    for values in
        ["[]", "[[4,1],[2,2]]", "[[2,2],[2,2]]", "[[4]]", "[[3,1]]", "[[4,0]]", "[[],[4,1]]"]
    {
        let text = split(&format!(r#"{good},"values":{values}"#));
        assert!(serde_json::from_str::<Parameter>(&text).is_err(), "{text}");
    }
    for fields in [
        good.replace(r#""extent":4"#, r#""extent":0"#),
        good.replace(r#""parts":2"#, r#""parts":1000000000000"#),
        good.replace("[1,2,4]", "[4,2,1]"),
        good.replace("[2]", "[3,2]"),
    ] {
        let text = split(&format!(r#"{fields},"values":[[2,2],[4,1]]"#));
        assert!(serde_json::from_str::<Parameter>(&text).is_err(), "{text}");
    }
    let items = vec![r#""x""#; 13].join(",");
    let many = format!(r#"{{"name":"t","domain":{{"kind":"permutation","items":[{items}]}}}}"#);
    assert!(serde_json::from_str::<Parameter>(&many).is_err());
}

fn small() -> SearchSpace {
    SearchSpace::new(vec![
        Parameter::new("tile", Factorization::new(8, 3, Splits::Divisible)),
        Parameter::new("order", Permutation::new(["i", "j", "k"])),
        Parameter::new("unroll", Discrete::new([1, 2, 4])),
        Parameter::new("pack", Categorical::new(["no", "yes"])),
    ])
}
