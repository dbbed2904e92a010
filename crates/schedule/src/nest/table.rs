//! [`Table`]: an append-only list that is copied by chunks.

use std::ops::{Index, IndexMut};
use std::sync::{Arc, OnceLock};

/// The elements of a chunk, which is copied if one of them changes.
const PART: usize = 64;

/// An append-only list. Clones share chunks, and a change copies only the chunk of the element.
///
/// A nest may have tens of thousands of buffers and variables, and each step of a schedule keeps
/// the previous nest.
#[derive(Debug, Clone)]
pub struct Table<T> {
    /// All chunks but the last one are full.
    parts: Vec<Arc<Part<T>>>,
}

#[derive(Debug)]
struct Part<T> {
    items: Vec<T>,
    /// The cached result of [`Table::sum`].
    sum: OnceLock<u128>,
    /// The cached keys of [`Table::find`].
    keys: OnceLock<Vec<u64>>,
}

impl<T> Part<T> {
    fn new(items: Vec<T>) -> Self {
        Self { items, sum: OnceLock::new(), keys: OnceLock::new() }
    }
}

impl<T: Clone> Clone for Part<T> {
    /// A clone is made to be changed, so it drops the caches.
    fn clone(&self) -> Self {
        Self::new(self.items.clone())
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { parts: Vec::new() }
    }
}

impl<T> Table<T> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        let before = self.parts.len().saturating_sub(1) * PART;
        before + self.parts.last().map_or(0, |part| part.items.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// An element by number.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.parts.get(number / PART)?.items.get(number % PART)
    }

    /// The last element.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.parts.last()?.items.last()
    }

    /// All elements, in order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { table: self, next: 0, end: self.len() }
    }

    /// The sum of `number` over all elements. It must be the same function at each call, because
    /// unchanged chunks use cached sums.
    pub fn sum(&self, number: impl Fn(&T) -> u128) -> u128 {
        let of_part = |part: &Arc<Part<T>>| {
            let sum = || part.items.iter().map(&number).fold(0, u128::saturating_add);
            *part.sum.get_or_init(sum)
        };
        self.parts.iter().map(of_part).fold(0, u128::saturating_add)
    }

    /// The number of the first element that `is` the wanted one, among those with its `key`. The
    /// key must be the same function at each call, because unchanged chunks use cached keys.
    pub fn find(
        &self,
        key: impl Fn(&T) -> u64,
        wanted: u64,
        is: impl Fn(&T) -> bool,
    ) -> Option<usize> {
        self.parts.iter().enumerate().find_map(|(number, part)| {
            let keys = part.keys.get_or_init(|| part.items.iter().map(&key).collect());
            let mut places = keys.iter().enumerate().filter(|(_, key)| **key == wanted);
            let place = places.find(|(place, _)| part.items.get(*place).is_some_and(&is));
            place.map(|(place, _)| number * PART + place)
        })
    }
}

impl<T: Clone> Table<T> {
    /// Adds an element at the end.
    pub fn push(&mut self, item: T) {
        match self.parts.last_mut() {
            Some(part) if part.items.len() < PART => changed(part).push(item),
            _ => {
                let mut items = Vec::with_capacity(PART);
                items.push(item);
                self.parts.push(Arc::new(Part::new(items)));
            }
        }
    }

    /// A mutable element by number.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        changed(self.parts.get_mut(number / PART)?).get_mut(number % PART)
    }

    /// All elements, mutable, in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.parts.iter_mut().flat_map(changed)
    }
}

/// The elements of a chunk that is about to change.
fn changed<T: Clone>(part: &mut Arc<Part<T>>) -> &mut Vec<T> {
    let part = Arc::make_mut(part);
    (part.sum, part.keys) = (OnceLock::new(), OnceLock::new());
    &mut part.items
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        &self.parts[number / PART].items[number % PART]
    }
}

impl<T: Clone> IndexMut<usize> for Table<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        &mut changed(&mut self.parts[number / PART])[number % PART]
    }
}

impl<T: Clone> FromIterator<T> for Table<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut table = Self::default();
        items.into_iter().for_each(|item| table.push(item));
        table
    }
}

impl<'a, T> IntoIterator for &'a Table<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The elements of a table, in order.
#[derive(Debug)]
pub struct Iter<'a, T> {
    table: &'a Table<T>,
    next: usize,
    end: usize,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        if self.next == self.end {
            return None;
        }
        self.next += 1;
        self.table.get(self.next - 1)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        self.end -= 1;
        self.table.get(self.end)
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_all_parts_but_those_that_change() {
        let table: Table<u32> = (0..200).collect();
        let mut copy = table.clone();
        copy[70] = 1000;
        copy.push(7);
        let shared = table.parts.iter().zip(&copy.parts).map(|(a, b)| Arc::ptr_eq(a, b));
        assert_eq!(shared.collect::<Vec<_>>(), [true, false, true, false]);
        assert_eq!((table[70], copy[70], table.len(), copy.len()), (70, 1000, 200, 201));
        assert_eq!((copy.last(), copy.get(201), copy.get(64)), (Some(&7), None, Some(&64)));
        assert!(table.iter().rev().copied().eq((0..200).rev()));
    }

    #[test]
    fn sums_follow_changes() {
        let mut table: Table<u32> = (0..130).collect();
        let sum = |table: &Table<u32>| table.sum(|item| u128::from(*item));
        assert_eq!(sum(&table), 129 * 130 / 2);
        table[0] = 10;
        table.push(5);
        table.iter_mut().skip(129).take(1).for_each(|item| *item = 0);
        assert_eq!(sum(&table), 129 * 130 / 2 + 10 + 5 - 129);
    }

    #[test]
    fn elements_are_found_after_changes() {
        let mut table: Table<u32> = (0..130).collect();
        // Ten elements share each key.
        let find = |table: &Table<u32>, wanted: u32| {
            table.find(|item| u64::from(item / 10), u64::from(wanted / 10), |item| *item == wanted)
        };
        assert_eq!((find(&table, 129), find(&table, 130)), (Some(129), None));
        let before = table.clone();
        table[5] = 130;
        table.push(77);
        assert_eq!(
            (find(&table, 130), find(&table, 5), find(&table, 77)),
            (Some(5), None, Some(77))
        );
        assert_eq!((find(&before, 130), find(&before, 5)), (None, Some(5)));
    }
}
