//! [`Shared`]: a copy-on-write vector.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A copy-on-write vector: clones share the elements until one of them changes.
///
/// A step of a schedule keeps the previous nest until the step is known to be legal. With shared
/// vectors, this costs as much as the step changes and not as much as the whole nest.
#[derive(Debug, Clone)]
pub struct Shared<T>(Arc<Vec<T>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> Deref for Shared<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(list: Vec<T>) -> Self {
        Self(Arc::new(list))
    }
}

impl<T> FromIterator<T> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = T>>(list: I) -> Self {
        Vec::from_iter(list).into()
    }
}

impl<T: Clone> IntoIterator for Shared<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Shared<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Shared<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::Shared;

    #[test]
    fn a_copy_shares_until_it_changes() {
        let list: Shared<i32> = vec![1, 2].into();
        let mut copy = list.clone();
        assert_eq!(list.as_ptr(), copy.as_ptr());
        copy.push(3);
        assert_eq!((list.as_slice(), copy.as_slice()), (&[1, 2][..], &[1, 2, 3][..]));
        // An unshared vector is changed in place.
        let before = copy.as_ptr();
        copy[0] = 7;
        assert_eq!(copy.as_ptr(), before);
    }
}
