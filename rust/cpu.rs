//! What the processor can do beyond the least that its architecture promises.
//!
//! The hot loops are plain Rust, compiled twice: once for the least, once for wide registers. The
//! source is the same and no operation in it depends on the width, so both give the same integers
//! and the same floats.

/// The instructions to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu {
    wide: bool,
}

impl Cpu {
    /// All that the processor at hand offers.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        let wide = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("popcnt");
        #[cfg(not(target_arch = "x86_64"))]
        let wide = false;
        Self { wide }
    }

    /// No more than the architecture promises.
    #[must_use]
    pub fn plain() -> Self {
        Self { wide: false }
    }

    /// Whether AVX2, BMI1, BMI2 and POPCNT are there; true only after a look at the processor,
    /// which is what makes the calls that rely on it sound.
    #[inline]
    #[must_use]
    pub(crate) fn is_wide(self) -> bool {
        self.wide
    }
}

/// Calls one of two functions that differ in the instructions they are compiled for.
///
/// The second is declared with the features that [`Cpu::is_wide`] stands for.
macro_rules! on_cpu {
    ($cpu:expr, $plain:ident, $wide:ident, ($($argument:expr),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "the features were looked for")]
        if $cpu.is_wide() {
            // SAFETY: `is_wide` is true only where the processor has all the features that the
            // function is compiled for.
            unsafe { $wide($($argument),*) }
        } else {
            $plain($($argument),*)
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = $cpu.is_wide();
            $plain($($argument),*)
        }
    }};
}
pub(crate) use on_cpu;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_needs_nothing() {
        assert!(!Cpu::plain().is_wide());
        assert_eq!(Cpu::detect(), Cpu::detect());
    }
}
