//! How one noun of the model is written on disk: a trait, its plain cases, and two macros that
//! make a disk type and both conversions from one list of fields.
//!
//! The conversions take a value apart field by field, without `..`: a field that is added to the
//! model and forgotten here does not compile. The names in the lists are the names in the file:
//! renaming one changes the disk form, which the kept fixture notices.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::text::{Amount, Ending, Moment, Name};
use crate::model::cluster::EndWord;
use crate::model::id::{JobId, ShardId};
use crate::model::units::{GpuSeconds, Money, Secs, Tflops, Time, Usage};

/// A noun with a disk form. Borrowing on the way out, so that a save copies no text.
pub(super) trait Form: Sized + 'static {
    type Disk<'a>;
    fn to_disk(&self) -> Self::Disk<'_>;
    fn from_disk(disk: Self::Disk<'_>) -> Self;
}

/// A value that is left out of the file, and read back as the default.
pub(super) trait Blank {
    fn is_blank(&self) -> bool;
}

macro_rules! plain {
    ($($ty:ty),*) => { $(
        impl Form for $ty {
            type Disk<'a> = $ty;
            fn to_disk(&self) -> $ty {
                *self
            }
            fn from_disk(disk: $ty) -> $ty {
                disk
            }
        }
        impl Blank for $ty {
            fn is_blank(&self) -> bool {
                *self == <$ty>::default()
            }
        }
    )* };
}
plain!(bool, u32, u64, i64, usize);

/// One field in a tuple, written as what is in it (its unit is in the model's type).
macro_rules! number {
    ($($ty:ident($inner:ty)),*) => { $(
        impl Form for $ty {
            type Disk<'a> = $inner;
            fn to_disk(&self) -> $inner {
                let $ty(number) = self;
                *number
            }
            fn from_disk(disk: $inner) -> $ty {
                $ty(disk)
            }
        }
    )* };
}
number!(JobId(u64), Secs(i64), GpuSeconds(u64), Usage(u64), Tflops(u64));

/// Written as text by a wrapper of `text.rs`.
macro_rules! wrapped {
    ($($ty:ident in $disk:ident),*) => { $(
        impl Form for $ty {
            type Disk<'a> = $disk;
            fn to_disk(&self) -> $disk {
                $disk(*self)
            }
            fn from_disk(disk: $disk) -> $ty {
                let $disk(inner) = disk;
                inner
            }
        }
    )* };
}
wrapped!(Time in Moment, Money in Amount, EndWord in Ending);

impl Form for String {
    type Disk<'a> = Cow<'a, str>;
    fn to_disk(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
    fn from_disk(disk: Cow<'_, str>) -> String {
        disk.into_owned()
    }
}

impl Form for Arc<str> {
    type Disk<'a> = Cow<'a, str>;
    fn to_disk(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
    fn from_disk(disk: Cow<'_, str>) -> Arc<str> {
        disk.into()
    }
}

impl Form for Arc<Path> {
    type Disk<'a> = Cow<'a, str>;
    fn to_disk(&self) -> Cow<'_, str> {
        self.to_string_lossy()
    }
    fn from_disk(disk: Cow<'_, str>) -> Arc<Path> {
        Path::new(&*disk).into()
    }
}

impl Form for ShardId {
    type Disk<'a> = Name<'a>;
    fn to_disk(&self) -> Name<'_> {
        Name(Cow::Borrowed(self))
    }
    fn from_disk(disk: Name<'_>) -> ShardId {
        disk.0.into_owned()
    }
}

impl<T: Form> Form for Option<T> {
    type Disk<'a> = Option<T::Disk<'a>>;
    fn to_disk(&self) -> Self::Disk<'_> {
        self.as_ref().map(T::to_disk)
    }
    fn from_disk(disk: Self::Disk<'_>) -> Self {
        disk.map(T::from_disk)
    }
}

impl<T: Form> Form for Box<T> {
    type Disk<'a> = T::Disk<'a>;
    fn to_disk(&self) -> Self::Disk<'_> {
        T::to_disk(self)
    }
    fn from_disk(disk: Self::Disk<'_>) -> Self {
        Box::new(T::from_disk(disk))
    }
}

impl<T: Form> Form for Vec<T> {
    type Disk<'a> = Vec<T::Disk<'a>>;
    fn to_disk(&self) -> Self::Disk<'_> {
        self.iter().map(T::to_disk).collect()
    }
    fn from_disk(disk: Self::Disk<'_>) -> Self {
        disk.into_iter().map(T::from_disk).collect()
    }
}

impl<T: Form> Form for BTreeMap<String, T> {
    type Disk<'a> = BTreeMap<Cow<'a, str>, T::Disk<'a>>;
    fn to_disk(&self) -> Self::Disk<'_> {
        self.iter().map(|(key, value)| (Cow::Borrowed(key.as_str()), value.to_disk())).collect()
    }
    fn from_disk(disk: Self::Disk<'_>) -> Self {
        disk.into_iter().map(|(key, value)| (key.into_owned(), T::from_disk(value))).collect()
    }
}

impl<K, V> Blank for BTreeMap<K, V> {
    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl Blank for Cow<'_, str> {
    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Blank for Option<T> {
    fn is_blank(&self) -> bool {
        self.is_none()
    }
}

impl<T> Blank for Vec<T> {
    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

/// `disk_struct!(OnDisk for Noun { always: u32; left_out_when_blank: u32 })`, in the model's types.
macro_rules! disk_struct {
    ($(#[$meta:meta])* $disk:ident for $model:ident {
        $($field:ident : $ty:ty),* ; $($blank:ident : $bty:ty),*
    }) => {
        #[derive(Serialize, Deserialize)]
        $(#[$meta])*
        #[serde(deny_unknown_fields)]
        pub(in crate::store::v1) struct $disk<'a> {
            $($field: <$ty as Form>::Disk<'a>,)*
            $(
                #[serde(default, skip_serializing_if = "Blank::is_blank")]
                $blank: <$bty as Form>::Disk<'a>,
            )*
        }

        impl Form for $model {
            type Disk<'a> = $disk<'a>;
            fn to_disk(&self) -> $disk<'_> {
                let $model { $($field,)* $($blank,)* } = self;
                $disk { $($field: Form::to_disk($field),)* $($blank: Form::to_disk($blank),)* }
            }
            fn from_disk(disk: $disk<'_>) -> $model {
                let $disk { $($field,)* $($blank,)* } = disk;
                $model { $($field: Form::from_disk($field),)* $($blank: Form::from_disk($blank),)* }
            }
        }

        #[cfg(test)]
        impl crate::store::v1::dice::Roll for $model {
            fn roll(dice: &mut crate::store::v1::dice::Dice) -> $model {
                use crate::store::v1::dice::Roll;
                $model { $($field: Roll::roll(dice),)* $($blank: Roll::roll(dice),)* }
            }
        }
    };
}

/// The same for an enum: `"word"`, `{"word": {..fields..}}` or `{"word": inner}`.
macro_rules! disk_enum {
    ($(#[$meta:meta])* $disk:ident for $model:ident {
        $( $(#[$vmeta:meta])* $variant:ident $( { $($field:ident : $ty:ty),+ } )? $( ( $inner:ident : $ity:ty ) )? ),+
        $(,)?
    }) => {
        #[derive(Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        #[allow(clippy::large_enum_variant, reason = "one at a time is made, read or written")]
        $(#[$meta])*
        pub(in crate::store::v1) enum $disk<'a> {
            $( $(#[$vmeta])* $variant
                $( { $($field: <$ty as Form>::Disk<'a>),+ } )?
                $( ( <$ity as Form>::Disk<'a> ) )?
            ),+
        }

        impl Form for $model {
            type Disk<'a> = $disk<'a>;
            fn to_disk(&self) -> $disk<'_> {
                match self { $(
                    $model::$variant $( { $($field),+ } )? $( ( $inner ) )? =>
                        $disk::$variant
                            $( { $($field: Form::to_disk($field)),+ } )?
                            $( ( Form::to_disk($inner) ) )?
                ),+ }
            }
            fn from_disk(disk: $disk<'_>) -> $model {
                match disk { $(
                    $disk::$variant $( { $($field),+ } )? $( ( $inner ) )? =>
                        $model::$variant
                            $( { $($field: Form::from_disk($field)),+ } )?
                            $( ( Form::from_disk($inner) ) )?
                ),+ }
            }
        }

        #[cfg(test)]
        impl crate::store::v1::dice::Roll for $model {
            fn roll(dice: &mut crate::store::v1::dice::Dice) -> $model {
                use crate::store::v1::dice::{Dice, Roll};
                let makers: &[fn(&mut Dice) -> $model] = &[ $(
                    |_dice| $model::$variant
                        $( { $($field: Roll::roll(_dice)),+ } )?
                        $( ( <$ity as Roll>::roll(_dice) ) )?
                ),+ ];
                dice.pick(makers)(dice)
            }
        }
    };
}

/// The same for an enum of bare words.
macro_rules! disk_words {
    ($disk:ident for $model:ident { $($variant:ident),+ }) => {
        #[derive(Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(in crate::store::v1) enum $disk { $($variant),+ }

        impl Form for $model {
            type Disk<'a> = $disk;
            fn to_disk(&self) -> $disk {
                match self { $($model::$variant => $disk::$variant),+ }
            }
            fn from_disk(disk: $disk) -> $model {
                match disk { $($disk::$variant => $model::$variant),+ }
            }
        }

        #[cfg(test)]
        impl crate::store::v1::dice::Roll for $model {
            fn roll(dice: &mut crate::store::v1::dice::Dice) -> $model {
                *dice.pick(&[$($model::$variant),+])
            }
        }
    };
}

pub(super) use {disk_enum, disk_struct, disk_words};

/// `(GPUs, when)` of what was learned: named on disk, a pair in the model.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskOwnGpus {
    gpus: Option<u32>,
    at: Moment,
}

impl Form for (Option<u32>, Time) {
    type Disk<'a> = DiskOwnGpus;
    fn to_disk(&self) -> DiskOwnGpus {
        let (gpus, at) = self;
        DiskOwnGpus { gpus: *gpus, at: Moment(*at) }
    }
    fn from_disk(disk: DiskOwnGpus) -> Self {
        let DiskOwnGpus { gpus, at: Moment(at) } = disk;
        (gpus, at)
    }
}
