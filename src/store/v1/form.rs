//! How one noun of the model is written on disk: a trait, and macros that make a disk type and both
//! conversions from one list of fields. Its plain cases are in `nouns.rs`.
//!
//! The conversions take a value apart field by field, without `..`: a field that is added to the
//! model and forgotten here does not compile. The names in the lists are the names in the file:
//! renaming one changes the disk form, which the kept fixture notices.

/// A noun with a disk form.
pub(super) trait Form: Sized + 'static {
    /// What is read.
    type Disk<'a>;
    /// Appends it as JSON.
    fn spell(&self, out: &mut Vec<u8>);
    fn from_disk(disk: Self::Disk<'_>) -> Self;
}

/// A value that is left out of the file, and read back as the default.
pub(super) trait Blank {
    fn is_blank(&self) -> bool;
}

/// Blank is what the default is.
macro_rules! blank_by_default {
    ($($ty:ty),*) => { $(
        impl Blank for $ty {
            fn is_blank(&self) -> bool {
                *self == <$ty>::default()
            }
        }
    )* };
}

/// One entry of an object, a comma behind it; `key` in quotes, with its colon.
#[inline]
pub(super) fn entry(key: &str, value: &impl Form, out: &mut Vec<u8>) {
    out.extend_from_slice(key.as_bytes());
    value.spell(out);
    out.push(b',');
}

/// `fields!(out; a, b; c, d)`: an object of fields, each under its own name; `c` and `d` are left out
/// where they are blank.
macro_rules! fields {
    ($out:expr; $($field:ident),* $(; $($blank:ident),*)?) => {
        crate::store::v1::json::list(*b"{}", $out, |_out| {
            $( crate::store::v1::form::entry(concat!("\"", stringify!($field), "\":"), $field, _out); )*
            $($(
                if !Blank::is_blank($blank) {
                    crate::store::v1::form::entry(concat!("\"", stringify!($blank), "\":"), $blank, _out);
                }
            )*)?
        })
    };
}

/// A variant: `"word"`, `{"word":{..fields..}}` or `{"word":inner}`.
macro_rules! variant {
    ($out:expr, $variant:ident) => { crate::store::v1::form::word!($out, $variant) };
    ($out:expr, $variant:ident { $($field:ident),+ }) => {{
        $out.push(b'{');
        crate::store::v1::form::word!($out, $variant);
        $out.push(b':');
        crate::store::v1::form::fields!($out; $($field),+);
        $out.push(b'}');
    }};
    ($out:expr, $variant:ident ( $inner:ident )) => {{
        $out.push(b'{');
        crate::store::v1::form::word!($out, $variant);
        $out.push(b':');
        Form::spell($inner, $out);
        $out.push(b'}');
    }};
}

/// The word of a variant, in quotes.
macro_rules! word {
    ($out:expr, $variant:ident) => {{
        use crate::store::v1::json::{snake, snake_length};
        const NAME: &str = stringify!($variant);
        const WORD: [u8; snake_length(NAME)] = snake(NAME);
        $out.push(b'"');
        $out.extend_from_slice(&WORD);
        $out.push(b'"');
    }};
}

/// `disk_struct!(OnDisk for Noun { always: u32; left_out_when_blank: u32 })`, in the model's types.
macro_rules! disk_struct {
    ($(#[$meta:meta])* $disk:ident for $model:ident {
        $($field:ident : $ty:ty),* ; $($blank:ident : $bty:ty),*
    }) => {
        #[derive(Deserialize)]
        $(#[$meta])*
        #[serde(deny_unknown_fields)]
        pub(in crate::store::v1) struct $disk<'a> {
            $($field: <$ty as Form>::Disk<'a>,)*
            $(
                #[serde(default)]
                $blank: <$bty as Form>::Disk<'a>,
            )*
        }

        impl Form for $model {
            type Disk<'a> = $disk<'a>;
            fn spell(&self, out: &mut Vec<u8>) {
                let $model { $($field,)* $($blank,)* } = self;
                crate::store::v1::form::fields!(out; $($field),* ; $($blank),*);
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
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        #[allow(clippy::large_enum_variant, reason = "one at a time is read")]
        $(#[$meta])*
        pub(in crate::store::v1) enum $disk<'a> {
            $( $(#[$vmeta])* $variant
                $( { $($field: <$ty as Form>::Disk<'a>),+ } )?
                $( ( <$ity as Form>::Disk<'a> ) )?
            ),+
        }

        impl Form for $model {
            type Disk<'a> = $disk<'a>;
            fn spell(&self, out: &mut Vec<u8>) {
                use crate::store::v1::form::variant;
                match self { $(
                    $model::$variant $( { $($field),+ } )? $( ( $inner ) )? => {
                        variant!(out, $variant $( { $($field),+ } )? $( ( $inner ) )?);
                    }
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
    ($(#[$meta:meta])* $disk:ident for $model:ident {
        $( $(#[$vmeta:meta])* $variant:ident ),+
    }) => {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        $(#[$meta])*
        pub(in crate::store::v1) enum $disk { $( $(#[$vmeta])* $variant ),+ }

        impl Form for $model {
            type Disk<'a> = $disk;
            fn spell(&self, out: &mut Vec<u8>) {
                match self { $($model::$variant => crate::store::v1::form::word!(out, $variant)),+ }
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

pub(super) use {blank_by_default, disk_enum, disk_struct, disk_words, fields, variant, word};
