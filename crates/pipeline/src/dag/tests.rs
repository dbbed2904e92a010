#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use tensorwright_lang::Module;

use super::*;

fn dag(text: &str, sizes: &[(&str, i64)]) -> Dag {
    Dag::new(&Module::parse("t.tc", text).unwrap().bind("f", sizes.iter().copied()).unwrap())
}

fn region(body: &str, of: &[i64]) -> Vec<i64> {
    let text = format!("def f(float(N,M) a) -> (b) {{ {body} }}");
    dag(&text, &[("N", 100), ("M", 100)]).stages[0].edges[0].footprint.region(of)
}

#[test]
fn footprints_follow_subscripts() {
    let all = " where i in 0:100, j in 0:100";
    assert_eq!(region("b(i,j) = a(i,j) + a(i+2,j)", &[8, 16]), [10, 16]);
    assert_eq!(region("b(i,j) = a(2*i,j) + a(2*i+1,j)", &[8, 16]), [16, 16]);
    let clamped = "b(i,j) = a(clamp(i-1,0,99),j) + a(clamp(i+1,0,99),j)";
    assert_eq!(region(&format!("{clamped}{all}"), &[8, 16]), [10, 16]);
    let mirrored = "b(i,j) = a(min(max(i-1, 1-i), 197-i), j) + a(i,j)";
    assert_eq!(region(mirrored, &[8, 16]), [9, 16]);
    assert_eq!(region("b(i,j) = a(i/2, j%4) where i in 0:100, j in 0:100", &[8, 16]), [5, 4]);
    assert_eq!(region("b(i,j) +=! a(i+k,j) where k in 0:3", &[8, 16]), [10, 16]);
    assert_eq!(region("b(i,j) = a(j,i)", &[8, 16]), [16, 8]);
    assert_eq!(region(&format!("b(i,j) = a(min(99-i, 99), j){all}"), &[8, 16]), [8, 16]);
}

#[test]
fn what_data_decide_is_whole() {
    let text = "def f(float(N) a, int32(N) at) -> (b) { b(i) = a(clamp(at(i), 0, N-1)) }";
    let dag = dag(text, &[("N", 100)]);
    let edge = dag.stages[0].edges.iter().find(|edge| edge.source == Source::Input(0)).unwrap();
    assert_eq!(edge.footprint.region(&[8]), [100]);
}

#[test]
fn graphs_are_printed() {
    let text = "def f(float(H,W) in) -> (out) {
        bx(y,x) = in(y,x) + in(y,x+1)
        out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
    }";
    let shown = dag(text, &[("H", 64), ("W", 64)]).to_string();
    let wanted = "bx  64x63 of 4 bytes, 1 operations
  <- in  [d0, d1+1], 2 reads
out  62x63 of 4 bytes, 2 operations, result
  <- bx  [d0+2, d1], 3 reads
";
    assert_eq!(shown, wanted);
}

#[test]
fn products_and_recurrences_are_left_to_rules() {
    let text = "def f(float(N,N) a, float(N,N) b) -> (d, e) {
        c(i,j) +=! a(i,k) * b(k,j)
        d(i,j) = c(i,j) + 1
        e(i,j) = e(i-1,j) + b(i,j) scan i from 0
    }";
    let dag = dag(text, &[("N", 64)]);
    assert!(dag.stages.iter().all(|stage| stage.fixed.is_some()), "{dag}");
}

/// Four filters of an image share its pixels, but are not a product: they move like stencils.
#[test]
fn filters_with_few_results_are_no_products() {
    let text = "def f(float(H,W) in, float(F,3,3) w) -> (out) {
        conv(f,y,x) +=! w(f,i,j) * in(y+i,x+j)
        out(y,x) +=! abs(conv(f,y,x))
    }";
    let is_movable =
        |filters| dag(text, &[("H", 64), ("W", 64), ("F", filters)]).stages[0].is_movable;
    assert!(is_movable(4) && !is_movable(32));
}

/// Each term of a scatter goes to one position, however many positions there are.
#[test]
fn terms_of_a_scatter_count_once() {
    let text = "def f(float(N) a, int bins) -> (h) {
        h(c,b) +=! a(i) scatter b = clamp(int(a(i)), 0, bins - 1) where c in 0:2, b in 0:bins
    }";
    let dag = dag(text, &[("N", 1000), ("bins", 50)]);
    assert_eq!(dag.stages[0].scattered, Some(2000.0));
}

/// Analyzing a thousand stages takes linear time.
#[test]
fn long_chains_are_no_trouble() {
    let stages: String =
        (1..1000).map(|n| format!("s{n}(i) = s{}(i) + s{}(i+1)\n", n - 1, n - 1)).collect();
    let text = format!("def f(float(N) a) -> (s999) {{ s0(i) = a(i)\n{stages} }}");
    let dag = dag(&text, &[("N", 4000)]);
    assert_eq!((dag.stages.len(), dag.consumers[0].len()), (1000, 1));
}
