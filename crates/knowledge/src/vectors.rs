//! Vectors as bytes, and all of them at once.
//!
//! A vector is kept as signed bytes and one factor: a quarter of the size, and what is lost is less
//! than what tells two texts apart. To find the nearest, every vector is looked at: a hundred thousand
//! of 128 bytes are 13 MB, which memory gives in a few milliseconds, and nothing has to be built,
//! tuned or repaired.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

const LIMIT: f32 = 127.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Quantised {
    scale: f32,
    values: Vec<i8>,
}

impl Quantised {
    /// The direction counts, not the length. `None` for nothing, or what has no direction.
    pub fn of(vector: &[f32]) -> Option<Self> {
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if !norm.is_normal() {
            return None;
        }
        let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs())) / norm;
        let scale = largest / LIMIT;
        // Within -127 to 127 by what was divided by.
        #[expect(clippy::cast_possible_truncation, reason = "it is a whole number in that range")]
        let values = vector.iter().map(|x| (x / norm / scale).round() as i8).collect();
        Some(Self { scale, values })
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn to_blob(&self) -> Vec<u8> {
        let values = self.values.iter().map(|value| value.to_le_bytes()[0]);
        self.scale.to_le_bytes().into_iter().chain(values).collect()
    }

    pub(crate) fn from_blob(blob: &[u8]) -> Option<Self> {
        let (scale, values) = blob.split_first_chunk::<4>()?;
        let values = values.iter().map(|byte| i8::from_le_bytes([*byte])).collect();
        Some(Self { scale: f32::from_le_bytes(*scale), values })
    }
}

/// Vectors of one model, each with the id and the group of what it is of.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    dimensions: usize,
    values: Vec<i8>,
    rows: Vec<Row>,
    place: HashMap<i64, usize>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    id: i64,
    group: i64,
    scale: f32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Near {
    pub(crate) id: i64,
    pub(crate) similarity: f32,
}

impl Eq for Near {}

/// The farthest is the greatest: it is what a full heap gives up.
impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        other.similarity.total_cmp(&self.similarity).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Matrix {
    /// One of other dimensions than the rest is left out: it cannot be of the same model.
    pub(crate) fn insert(&mut self, id: i64, group: i64, vector: &Quantised) {
        self.remove(id);
        if self.rows.is_empty() {
            self.dimensions = vector.dimensions();
        }
        if vector.dimensions() != self.dimensions {
            return;
        }
        self.place.insert(id, self.rows.len());
        self.rows.push(Row { id, group, scale: vector.scale });
        self.values.extend_from_slice(&vector.values);
    }

    /// The last row takes its place.
    pub(crate) fn remove(&mut self, id: i64) {
        let Some(at) = self.place.remove(&id) else { return };
        self.rows.swap_remove(at);
        if let Some(moved) = self.rows.get(at) {
            self.place.insert(moved.id, at);
        }
        let width = self.dimensions;
        let last = self.rows.len() * width;
        self.values.copy_within(last.., at * width);
        self.values.truncate(last);
    }

    /// Nearest first.
    pub(crate) fn nearest(
        &self,
        query: &Quantised,
        most: usize,
        least: f32,
        wanted: impl Fn(i64) -> bool,
    ) -> Vec<Near> {
        if query.dimensions() != self.dimensions || self.dimensions == 0 || most == 0 {
            return Vec::new();
        }
        let mut heap = BinaryHeap::with_capacity(most + 1);
        for (row, values) in self.rows.iter().zip(self.values.chunks_exact(self.dimensions)) {
            #[expect(clippy::cast_precision_loss, reason = "far less precision is needed")]
            let similarity = dot(&query.values, values) as f32 * row.scale * query.scale;
            if similarity < least || !wanted(row.group) {
                continue;
            }
            let near = Near { id: row.id, similarity };
            if heap.len() < most {
                heap.push(near);
            } else if heap.peek().is_some_and(|farthest| near < *farthest) {
                heap.pop();
                heap.push(near);
            }
        }
        heap.into_sorted_vec()
    }
}

/// As sums of pairs of 16 bits, which compilers know an instruction for.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_vector_keeps_its_direction_as_bytes() {
        let vector: Vec<f32> = (0u8..64).map(|n| (f32::from(n) * 0.7).sin()).collect();
        let kept = Quantised::of(&vector).unwrap();
        let itself = dot(&kept.values, &kept.values) as f32 * kept.scale * kept.scale;
        assert!((itself - 1.0).abs() < 0.01, "{itself}");
        assert_eq!(Quantised::from_blob(&kept.to_blob()), Some(kept));
        for nothing in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY]] {
            assert_eq!(Quantised::of(nothing), None, "{nothing:?}");
        }
        assert_eq!(Quantised::from_blob(b"abc"), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(i64, [i8; 3]),
        Remove(i64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let vector = prop::array::uniform3(-3i8..=3);
        let insert = (0..8i64, vector).prop_map(|(id, vector)| Step::Insert(id, vector));
        prop::collection::vec(prop_oneof![insert, (0..8i64).prop_map(Step::Remove)], 0..40)
    }

    proptest! {
        #[test]
        fn after_any_changes_the_nearest_are_those_of_a_plain_list(
            steps in steps(), query in prop::array::uniform3(-3i8..=3),
        ) {
            let vector = |values: [i8; 3]| Quantised::of(&values.map(f32::from));
            let mut matrix = Matrix::default();
            let mut list: HashMap<i64, Quantised> = HashMap::new();
            for step in steps {
                match step {
                    Step::Insert(id, values) => if let Some(vector) = vector(values) {
                        matrix.insert(id, id % 2, &vector);
                        list.insert(id, vector);
                    },
                    Step::Remove(id) => {
                        matrix.remove(id);
                        list.remove(&id);
                    }
                }
            }
            prop_assert_eq!(matrix.rows.len(), list.len());
            let Some(query) = vector(query) else { return Ok(()) };
            let mut naive: Vec<_> = list
                .iter()
                .filter(|(id, _)| *id % 2 == 0)
                .map(|(id, kept)| Near {
                    id: *id,
                    similarity: dot(&query.values, &kept.values) as f32 * kept.scale * query.scale,
                })
                .collect();
            naive.sort();
            naive.truncate(3);
            prop_assert_eq!(matrix.nearest(&query, 3, -2.0, |group| group == 0), naive);
        }
    }
}
