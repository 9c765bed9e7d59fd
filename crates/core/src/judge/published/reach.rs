//! What a printed figure may stand for.

use std::ops::{Add, Mul};

use crate::model::{Column, Printed};

/// All values from `low` to `high`, none of them negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    pub low: f64,
    pub high: f64,
}

impl Reach {
    /// What `figure` may stand for, in the unit of the column's quantity.
    pub fn of(figure: &Printed, column: &Column) -> Reach {
        let Printed { value, step, scale, .. } = *figure;
        let scale = scale.unwrap_or(column.scale);
        Reach { low: (value - step).max(0.0) * scale, high: (value + step) * scale }
    }

    /// Exactly `value`.
    pub fn exactly(value: f64) -> Reach {
        Reach { low: value, high: value }
    }

    /// The middle of it.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// All that `self / other` may be; unbounded where `other` may be nothing.
    pub fn over(self, other: Reach) -> Reach {
        Reach { low: self.low / other.high, high: self.high / other.low }
    }

    /// Nothing in `self` reaches up to anything in `other`, by more than the error of calculating.
    pub fn is_below(self, other: Reach) -> bool {
        self.high < other.low * (1.0 - 1e-9)
    }

    /// Nothing lies in both.
    pub fn misses(self, other: Reach) -> bool {
        self.is_below(other) || other.is_below(self)
    }
}

impl Mul for Reach {
    type Output = Reach;

    fn mul(self, other: Reach) -> Reach {
        Reach { low: self.low * other.low, high: self.high * other.high }
    }
}

impl Add for Reach {
    type Output = Reach;

    fn add(self, other: Reach) -> Reach {
        Reach { low: self.low + other.low, high: self.high + other.high }
    }
}
