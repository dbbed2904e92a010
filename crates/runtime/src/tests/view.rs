//! Tests of views against index arithmetic on various shapes.

use crate::{AlignedBuffer, Element, View, ViewError};

/// The elements of a view, computed by the definition of strides.
fn by_definition<T: Element>(
    base: &[T],
    offset: usize,
    shape: &[usize],
    strides: &[isize],
) -> Vec<T> {
    let Some((&extent, inner_shape)) = shape.split_first() else { return vec![base[offset]] };
    let rows = (0..extent).flat_map(|index| {
        let offset = offset.checked_add_signed(index as isize * strides[0]).unwrap();
        by_definition(base, offset, inner_shape, &strides[1..])
    });
    rows.collect()
}

fn check<T: Element + PartialEq + std::fmt::Debug>(
    base: &[T],
    offset: usize,
    shape: &[usize],
    strides: &[isize],
) {
    let view = View::new(base, offset, shape, strides).unwrap();
    let mut dense = AlignedBuffer::new(0).unwrap();
    view.to_dense(&mut dense).unwrap();
    let expected = by_definition(base, offset, shape, strides);
    assert_eq!(&dense.as_slice::<T>()[..view.elements()], expected, "{shape:?} {strides:?}");
    if view.is_dense() {
        assert_eq!(
            view.dense_bytes().unwrap(),
            &dense.as_bytes()[..expected.len() * size_of::<T>()]
        );
    }
}

#[test]
fn copies_follow_the_strides() {
    let base: Vec<f32> = (0..5000).map(|number| number as f32).collect();
    let cases: &[(usize, &[usize], &[isize])] = &[
        (0, &[], &[]),
        (17, &[], &[]),
        (0, &[40], &[1]),
        (39, &[40], &[-1]),
        (3, &[40], &[0]),
        (0, &[1, 1], &[999, -999]),
        (0, &[10, 20], &[20, 1]),
        (0, &[10, 20], &[32, 1]),
        (0, &[20, 10], &[1, 20]),
        (0, &[50, 70], &[1, 50]),
        (0, &[37, 130], &[1, 37]),
        (2000, &[17, 33], &[-1, 20]),
        (0, &[3, 17, 33], &[600, 1, 17]),
        (0, &[17, 3, 33], &[1, 600, 17]),
        (0, &[4, 5, 6], &[0, 6, 1]),
        (0, &[4, 5, 6], &[30, 0, 5]),
        (4999, &[4, 5, 6], &[-30, -6, -1]),
        (100, &[2, 3, 4, 5], &[7, -11, 13, 2]),
        (1000, &[5, 1, 5], &[-200, 12345, 40]),
    ];
    for &(offset, shape, strides) in cases {
        check(&base, offset, shape, strides);
    }
}

#[test]
fn every_element_size_is_copied() {
    check(&(0..200).map(|n| n as u8).collect::<Vec<_>>(), 0, &[10, 20], &[1, 10]);
    check(&(0..200).map(|n| n as u16).collect::<Vec<_>>(), 0, &[10, 20], &[1, 10]);
    check(&(0..200).map(f64::from).collect::<Vec<_>>(), 0, &[10, 20], &[1, 10]);
    check(&(0..200).collect::<Vec<i64>>(), 199, &[200], &[-1]);
}

#[test]
fn density_is_recognised() {
    let base = [0i32; 60];
    let dense = |shape: &[usize], strides: &[isize]| {
        View::new(&base, 0, shape, strides).unwrap().is_dense()
    };
    assert!(dense(&[3, 4, 5], &[20, 5, 1]));
    assert!(dense(&[3, 1, 5], &[5, 77, 1]));
    assert!(dense(&[], &[]));
    assert!(dense(&[0, 9], &[1, 1]));
    assert!(!dense(&[3, 5], &[20, 1]));
    assert!(!dense(&[5, 3], &[1, 5]));
    assert!(!dense(&[5], &[0]));
    let view = View::dense(&base, &[5, 12]).unwrap();
    assert!(view.is_dense());
    assert_eq!((view.shape(), view.strides()), (&[5, 12][..], &[12, 1][..]));
    assert_eq!((view.elements(), view.element_size()), (60, 4));
    assert_eq!(view.as_ptr(), base.as_ptr().cast());
}

#[test]
fn views_that_leave_their_slice_are_refused() {
    let base = [0u8; 10];
    let error = |offset, shape: &[usize], strides: &[isize]| {
        View::new(&base, offset, shape, strides).unwrap_err()
    };
    let lowest_highest = |lowest, highest| ViewError::OutOfBounds { lowest, highest, len: 10 };
    assert_eq!(error(0, &[11], &[1]), lowest_highest(0, 10));
    assert_eq!(error(3, &[5], &[-1]), lowest_highest(-1, 3));
    assert_eq!(error(10, &[], &[]), lowest_highest(10, 10));
    assert_eq!(error(0, &[2], &[]), ViewError::RankMismatch { shape: 1, strides: 0 });
    assert_eq!(error(0, &[1 << 40, 1 << 40], &[0, 0]), ViewError::TooLarge);
    let huge = error(5, &[2, 2], &[isize::MAX, isize::MIN]);
    assert!(matches!(huge, ViewError::OutOfBounds { .. }));
    assert!(View::dense(&base, &[usize::MAX]).is_err());
    assert!(View::dense(&base, &[usize::MAX, 2]).is_err());
    assert!(!lowest_highest(0, 10).to_string().is_empty());
}

#[test]
fn empty_views_touch_nothing() {
    let view = View::new::<f32>(&[], usize::MAX / 8, &[0, 5], &[1, 1]).unwrap();
    assert_eq!(view.elements(), 0);
    let mut target = AlignedBuffer::new(4).unwrap();
    view.to_dense(&mut target).unwrap();
    assert!(!view.as_ptr().is_null());
    assert!(View::dense::<f32>(&[], &[3, 0]).unwrap().is_dense());
}

#[test]
fn broadcasts_that_do_not_fit_into_memory_are_errors_of_the_copy() {
    let view = View::new(&[1u8], 0, &[1 << 50], &[0]).unwrap();
    assert!(view.to_dense(&mut AlignedBuffer::new(0).unwrap()).is_err());
}
