//! `erf`, within 2 ulp in both precisions.
//!
//! On `|x| < 1` it is `x + x q(x^2)`. From there on it is `1 - exp(-p(|x|))`, where `p` is a
//! minimax approximation of `-log(erfc)`. Its error is scaled by `erfc`, which is at most 0.16
//! there and decreases quickly, so a polynomial of moderate degree is enough.

use super::exp;
use super::lanes::Float;

/// `erf(x) / x - 1` in `x^2`, on `[0, 1]`, error `2^-29`.
const NEAR_SINGLE: [f64; 7] = [
    1.2837917e-01,
    -3.7612626e-01,
    1.12835854e-01,
    -2.6853813e-02,
    5.1883277e-03,
    -8.010194e-04,
    7.8538644e-05,
];

/// The same for double precision, error `2^-56`.
const NEAR_DOUBLE: [f64; 12] = [
    0.12837916709551256,
    -0.3761263890318352,
    0.11283791670944185,
    -0.026866170643111503,
    0.005223977606118712,
    -0.0008548325929323979,
    0.00012055293577135585,
    -1.4924712305740118e-05,
    1.644713160924535e-06,
    -1.6206313997772758e-07,
    1.3710981246788567e-08,
    -7.779469781253706e-10,
];

/// `-log(erfc(x))` on `[1, 4]`, error `2^-29` of `erf`.
const FAR_SINGLE: [f64; 7] = [
    3.415283e-04,
    1.1270891e+00,
    6.3814485e-01,
    1.03106715e-01,
    -2.1838045e-02,
    2.9476534e-03,
    -1.8637867e-04,
];

/// The same on `[1, 6]` for double precision, error `2^-57` of `erf`.
const FAR_DOUBLE: [f64; 18] = [
    5.028239751955881e-07,
    1.1283740897243406,
    0.6366436269820107,
    0.10270344254736648,
    -0.01899018455290251,
    -0.0004106201188807479,
    0.001915935384468365,
    -0.0007706370162111275,
    0.0001350466482084159,
    2.0268401392600232e-05,
    -2.282313940304415e-05,
    8.667345359773183e-06,
    -2.1357168249686573e-06,
    3.733092129254138e-07,
    -4.642360942659133e-08,
    3.934315142396371e-09,
    -2.0449884506346408e-10,
    4.9286771384653e-12,
];

/// The error function.
pub(super) fn erf<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let precision = x.precision();
    let size = x.abs();
    let near = x.mul_add((x * x).polynomial(precision.pick(&NEAR_SINGLE, &NEAR_DOUBLE)), x);
    // Above the upper bound, the result rounds to 1.
    let bounded = size.clamp(0.0, precision.pick(4.0, 6.0));
    let exponent = bounded.polynomial(precision.pick(&FAR_SINGLE, &FAR_DOUBLE));
    let reduced = exp::reduce(-exponent);
    let complement = reduced.exp() * reduced.exponent.power_of_two();
    let far = (x.constant(1.0) - complement).copysign(x);
    size.below(1.0).select(near, far)
}
