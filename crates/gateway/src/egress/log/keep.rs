//! How much of the record each sandbox keeps. Pure.
//!
//! Whoever has most gives up its oldest first. So a sandbox that fills the record loses what it wrote
//! itself, and one that went out little keeps all of it.

/// What was made is kept apart from what was not, of which there is this part as much: being refused
/// costs next to nothing, and must not push out what was done.
const NOT_MADE: u64 = 4;

/// How many connections are kept, those that were made or the others.
pub(super) fn most_of(made: bool, most: u64) -> u64 {
    if made { most } else { (most / NOT_MADE).max(1) }
}

/// How many each may have at most, so that all together have no more than `most`.
pub(super) fn share(mut counts: Vec<u64>, most: u64) -> u64 {
    counts.sort_unstable();
    let (mut left, mut others) = (most, counts.len() as u64);
    for count in counts {
        if count.saturating_mul(others) > left {
            return left / others;
        }
        left -= count;
        others -= 1;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whoever_has_most_gives_up_the_rest() {
        assert_eq!(share(vec![], 10), u64::MAX);
        assert_eq!(share(vec![4, 6], 10), u64::MAX);
        assert_eq!(share(vec![100, 3], 10), 7);
        assert_eq!(share(vec![100, 3, 90], 11), 4);
        assert_eq!(share(vec![9, 9, 9], 2), 0);
    }

    proptest! {
        #[test]
        fn all_together_stay_below_and_use_what_there_is(counts in prop::collection::vec(0..50_u64, 1..9), most in 0..200_u64) {
            let limit = share(counts.clone(), most);
            let kept: u64 = counts.iter().map(|count| *count.min(&limit)).sum();
            prop_assert!(kept <= most);
            let all: u64 = counts.iter().sum();
            prop_assert!(kept == all || kept + counts.len() as u64 > most);
        }
    }
}
