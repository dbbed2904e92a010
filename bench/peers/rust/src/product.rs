//! Batches of matrix products, and the two libraries that compute them.

use std::path::Path;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use gemm::Parallelism;
use serde_json::Value;

use crate::{Result, npy};

/// A matrix in memory: where it begins and how far apart rows and columns are.
#[derive(Clone, Copy)]
struct Strides {
    row: isize,
    column: isize,
    /// Elements per matrix of a batch.
    matrix: usize,
}

/// `C = A B` for every matrix of a batch.
pub(crate) struct Product {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    a_strides: Strides,
    b_strides: Strides,
}

impl Product {
    /// The product of a workload; `None` if it is none.
    pub(crate) fn of(workload: &Value, directory: &Path) -> Result<Option<Self>> {
        let operator = workload["operator"].as_str().unwrap_or_default();
        let shape = |name: &str| -> Vec<usize> {
            let list = workload["inputs"][name].as_array();
            list.into_iter().flatten().filter_map(Value::as_u64).map(|n| n as usize).collect()
        };
        let load = |name: &str| npy::read(&directory.join(name).with_extension("npy"));
        let flag = |name: &str| workload[name].as_bool().unwrap_or(false);
        let [ta, tb] = [flag("transpose_a"), flag("transpose_b")];
        let (a_shape, b_name, b_shape) = match operator {
            "gemm" | "bmm" => (shape("A"), "B", shape("B")),
            "gemv" => (shape("A"), "x", vec![shape("x")[0], 1]),
            _ => return Ok(None),
        };
        let [.., a_rows, a_columns] = a_shape[..] else { return Ok(None) };
        let [.., b_rows, b_columns] = b_shape[..] else { return Ok(None) };
        let (m, k) = if ta { (a_columns, a_rows) } else { (a_rows, a_columns) };
        let n = if tb { b_rows } else { b_columns };
        let batch = if a_shape.len() == 3 { a_shape[0] } else { 1 };
        Ok(Some(Self {
            batch,
            m,
            n,
            k,
            a: load("A")?,
            b: load(b_name)?,
            c: vec![0.0; batch * m * n],
            a_strides: strides(a_rows, a_columns, ta),
            b_strides: strides(b_rows, b_columns, tb),
        }))
    }

    /// The product of two numbers: what a call costs.
    pub(crate) fn ones() -> Self {
        let one = strides(1, 1, false);
        let numbers = || vec![1.0];
        Self {
            batch: 1,
            m: 1,
            n: 1,
            k: 1,
            a: numbers(),
            b: numbers(),
            c: numbers(),
            a_strides: one,
            b_strides: one,
        }
    }

    pub(crate) fn result(&self) -> &[f32] {
        &self.c
    }
}

fn strides(rows: usize, columns: usize, transposed: bool) -> Strides {
    let (row, column) = if transposed { (1, columns as isize) } else { (columns as isize, 1) };
    Strides { row, column, matrix: rows * columns }
}

/// What computes.
#[derive(Clone, Copy)]
pub(crate) enum Library {
    Gemm(usize),
    Faer(usize),
}

impl Library {
    pub(crate) fn named(name: &str, threads: usize) -> Result<Self> {
        match name {
            "gemm" => Ok(Self::Gemm(threads)),
            "faer" => Ok(Self::Faer(threads)),
            _ => Err(format!("there is no library `{name}`").into()),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gemm(_) => "gemm",
            Self::Faer(_) => "faer",
        }
    }

    /// The version that was locked.
    pub(crate) fn version(self) -> String {
        let lock = include_str!("../Cargo.lock");
        let entry = format!("name = \"{}\"\nversion = \"", self.name());
        let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split('"').next());
        format!("{} {}", self.name(), version.unwrap_or("?"))
    }

    /// Computes all products of a batch.
    pub(crate) fn compute(&self, product: &mut Product) {
        for i in 0..product.batch {
            match *self {
                Self::Gemm(threads) => with_gemm(product, i, threads),
                Self::Faer(threads) => with_faer(product, i, threads),
            }
        }
    }
}

fn with_gemm(p: &mut Product, i: usize, threads: usize) {
    let Product { m, n, k, a_strides: a, b_strides: b, .. } = *p;
    let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
    let c = &mut p.c[i * m * n..(i + 1) * m * n];
    let left = &p.a[i * a.matrix..(i + 1) * a.matrix];
    let right = &p.b[i * b.matrix..(i + 1) * b.matrix];
    // SAFETY: the slices hold whole matrices of these sizes and strides, and the result overlaps neither.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            1,
            n as isize,
            false,
            left.as_ptr(),
            a.column,
            a.row,
            right.as_ptr(),
            b.column,
            b.row,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn with_faer(p: &mut Product, i: usize, threads: usize) {
    let Product { m, n, k, a_strides: a, b_strides: b, .. } = *p;
    let par = if threads > 1 { Par::rayon(threads) } else { Par::Seq };
    let c = &mut p.c[i * m * n..(i + 1) * m * n];
    let left = &p.a[i * a.matrix..(i + 1) * a.matrix];
    let right = &p.b[i * b.matrix..(i + 1) * b.matrix];
    // SAFETY: as above.
    let (left, right) = unsafe {
        (
            MatRef::from_raw_parts(left.as_ptr(), m, k, a.row, a.column),
            MatRef::from_raw_parts(right.as_ptr(), k, n, b.row, b.column),
        )
    };
    matmul(MatMut::from_row_major_slice_mut(c, m, n), Accum::Replace, left, right, 1.0, par);
}
