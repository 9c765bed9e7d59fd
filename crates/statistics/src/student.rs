//! Student's t distribution: the chance of its two tails, and the point that leaves a given chance
//! there. Of our own, because the judge needs nothing else of a statistics library.

/// Chance that |T| exceeds `t` (at least 0) for Student's t of `df` degrees of freedom.
///
/// It is I_x(df/2, 1/2) with x = df / (df + t^2) (Abramowitz and Stegun 26.7.1 and 26.5.27), so
/// that small tails keep their relative precision: nothing is subtracted from 1.
pub fn two_sided_tail(t: f64, df: f64) -> f64 {
    let square = t * t;
    regularised_beta(df / (df + square), square / (df + square), df / 2.0, 0.5)
}

/// The standard error of a difference of two means, and its degrees of freedom, where their squared
/// errors are these, by so many figures (Welch, Biometrika 34, 1947; Satterthwaite, Biometrics
/// Bulletin 2, 1946).
pub fn welch([one, other]: [f64; 2], counts: [u32; 2]) -> (f64, f64) {
    let part = |squared: f64, count: u32| squared * squared / f64::from(count.max(2) - 1);
    let parts = part(one, counts[0]) + part(other, counts[1]);
    let freedom = if parts > 0.0 { (one + other).powi(2) / parts } else { 1.0 };
    ((one + other).sqrt(), freedom)
}

/// The `t` that |T| exceeds with chance `tail` (0 < `tail` < 1): `two_sided_tail(t, df) == tail`.
///
/// A bracket, doubled until it holds the point, then bisected: the tail falls monotonically, and
/// this isn't called often enough to earn a faster method that can leave its bracket.
pub fn two_sided_quantile(tail: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided_tail(high, df) > tail {
        low = high;
        high *= 2.0;
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high || high - low <= 1e-13 * high {
            return middle;
        }
        if two_sided_tail(middle, df) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// I_x(a, b), with `rest` = 1 - x given apart so that neither end loses digits.
fn regularised_beta(x: f64, rest: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || rest <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * rest.ln()).exp();
    // The fraction converges fast below the mean of the distribution; above it the symmetry
    // I_x(a, b) = 1 - I_{1-x}(b, a) leads back (Numerical Recipes, 3rd edition, section 6.4).
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(rest, b, a) / b
    }
}

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by
/// Lentz's method as Thompson and Barnett modified it.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    // It takes some sqrt(max(a, b)) steps; a thousand is far beyond any df there is.
    for step in 1..1000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            factor = c * d;
            fraction *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// ln Gamma(x) for x > 0 by Lanczos' approximation with g = 7 and nine terms, whose relative error
/// is below 1e-14 (coefficients: Godfrey, "A note on the computation of the convergent Lanczos
/// complex Gamma approximation", 2001).
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const FIRST: f64 = 0.999_999_999_999_809_9;
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let series = (1..).zip(COEFFICIENTS).map(|(place, c)| c / (x + f64::from(place)));
    let sum = FIRST + series.sum::<f64>();
    let base = x + G + 0.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(got: f64, wanted: f64, relative: f64) {
        assert!((got - wanted).abs() <= relative * wanted.abs(), "{got} is not {wanted}");
    }

    #[test]
    fn ln_gamma_agrees_with_known_values() {
        assert_close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-13);
        assert_close(ln_gamma(10.0), 362_880_f64.ln(), 1e-13);
        assert!(ln_gamma(1.0).abs() < 1e-14);
    }

    /// Two-sided critical values as printed: NIST/SEMATECH e-Handbook, section 1.3.6.7.2, and the
    /// tables of Fisher and Yates.
    #[test]
    fn quantiles_agree_with_published_tables() {
        for (df, tail, printed) in [
            (1.0, 0.05, 12.706),
            (1.0, 0.001, 636.619),
            (2.0, 0.05, 4.303),
            (3.0, 0.05, 3.182),
            (3.0, 0.001, 12.924),
            (4.0, 0.01, 4.604),
            (5.0, 0.1, 2.015),
            (9.0, 0.05, 2.262),
            (10.0, 0.002, 4.144),
            (11.0, 0.05, 2.201),
            (19.0, 0.01, 2.861),
            (30.0, 0.05, 2.042),
            (60.0, 0.001, 3.460),
            (120.0, 0.05, 1.980),
            (120.0, 0.001, 3.373),
        ] {
            let got = two_sided_quantile(tail, df);
            assert!((got - printed).abs() < 6e-4, "df {df} tail {tail}: {got}, printed {printed}");
        }
    }

    /// For 1, 2 and 4 degrees of freedom the distribution has a closed form.
    #[test]
    fn tails_agree_with_closed_forms_down_to_a_millionth() {
        for tail in [0.5, 0.05, 1e-3, 1e-6] {
            let t1 = 1.0 / (std::f64::consts::FRAC_PI_2 * tail).tan();
            assert_close(two_sided_quantile(tail, 1.0), t1, 1e-10);
            let t2 = (1.0 - tail) * (2.0 / (tail * (2.0 - tail))).sqrt();
            assert_close(two_sided_quantile(tail, 2.0), t2, 1e-10);
            let t4 = two_sided_quantile(tail, 4.0);
            let u = t4 / (4.0 + t4 * t4).sqrt();
            assert!((1.0 - u * (1.5 - 0.5 * u * u) - tail).abs() < 1e-12);
        }
    }

    #[test]
    fn the_quantile_undoes_the_tail() {
        for df in [1.0, 3.0, 7.0, 30.0, 120.0, 999.0] {
            for tail in [0.9, 0.3, 0.05, 1e-3, 1e-6, 1e-9] {
                assert_close(two_sided_tail(two_sided_quantile(tail, df), df), tail, 1e-9);
            }
        }
        assert_eq!(two_sided_tail(0.0, 5.0), 1.0);
        assert_eq!(two_sided_tail(f64::MAX, 5.0), 0.0);
    }
}
