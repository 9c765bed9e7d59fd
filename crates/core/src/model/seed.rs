//! Seeds derived from the run's one seed, and the draws made from them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// A seed for one purpose, from the run's seed, the words that name the purpose and a number.
///
/// SipHash-2-4 keeps purposes apart and gives the same value in every version and on every
/// machine, which the standard library's hasher does not promise. Under 2^53, so that a JSON
/// reader that holds numbers as doubles keeps it.
pub fn derived_seed(run_seed: u64, words: &[&str], number: u32) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(run_seed, 0);
    for word in words {
        hasher.write(word.as_bytes());
        hasher.write(&[0]);
    }
    hasher.write(&number.to_le_bytes());
    hasher.finish() & ((1 << 53) - 1)
}

/// Draws from a seed: the same in every version and on every machine.
#[derive(Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// Draws from `seed`.
    pub fn new(seed: u64) -> Self {
        Draws(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Sixty-four random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 up to, not including, `bound`. The bias of the remainder is under
    /// `bound` / 2^64.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound as u64) as usize
    }

    /// A number between 0 and 1, both excluded.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Puts `items` in random order (Fisher and Yates; Durstenfeld, 1964).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
