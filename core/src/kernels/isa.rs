//! Which instructions the loops may use: each loop is written once and compiled for every set.

/// A set of instructions that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isa {
    avx2: bool,
}

impl Isa {
    /// What every machine has.
    pub(super) const PORTABLE: Self = Self { avx2: false };

    /// The best that this machine has. The standard library asks the processor once.
    #[inline]
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            return Self { avx2: true };
        }
        Self::PORTABLE
    }

    /// Whether functions with the features `avx2,bmi1,bmi2,lzcnt,popcnt` may be called. Only `best` says so.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) const fn has_avx2(self) -> bool {
        self.avx2
    }

    /// Every set that this machine has, for tests.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let best = Self::best();
        std::iter::once(Self::PORTABLE).chain((best != Self::PORTABLE).then_some(best))
    }
}

/// Defines a function whose body is compiled for every set of instructions; its first argument says which is called.
macro_rules! for_each_isa {
    (
        $(#[$doc:meta])*
        fn $name:ident $(<$T:ident: $bound:path>)? ($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block
    ) => {
        $(#[$doc])*
        fn $name $(<$T: $bound>)? (isa: $crate::kernels::isa::Isa, $($arg: $ty),*) -> $ret {
            #[inline(always)]
            fn portable $(<$T: $bound>)? ($($arg: $ty),*) -> $ret $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2 $(<$T: $bound>)? ($($arg: $ty),*) -> $ret {
                    portable $(::<$T>)? ($($arg),*)
                }
                if isa.has_avx2() {
                    // SAFETY: this machine has the features, else `has_avx2` would be false.
                    return unsafe { avx2 $(::<$T>)? ($($arg),*) };
                }
            }
            let _ = isa;
            portable $(::<$T>)? ($($arg),*)
        }
    };
}
pub(super) use for_each_isa;
