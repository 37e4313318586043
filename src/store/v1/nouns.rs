//! The disk forms of numbers, texts, lists and what else the nouns of the model are made of.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::form::{Blank, Form, blank_by_default, fields};
use super::json;
use super::text::{Amount, Ending, Moment, Name};
use crate::model::cluster::EndWord;
use crate::model::id::{JobId, ShardId};
use crate::model::units::{GpuSeconds, Money, Secs, Tflops, Time, Usage};

blank_by_default!(bool, u32, u64, i64, usize, Secs, GpuSeconds, Usage, String);

macro_rules! plain {
    ($($ty:ty),*) => { $(
        impl Form for $ty {
            type Disk<'a> = $ty;
            fn spell(&self, out: &mut Vec<u8>) {
                json::number(*self, out);
            }
            fn from_disk(disk: $ty) -> $ty {
                disk
            }
        }
    )* };
}
plain!(u32, u64, i64, usize);

impl Form for bool {
    type Disk<'a> = bool;
    fn spell(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
    fn from_disk(disk: bool) -> bool {
        disk
    }
}

/// One field in a tuple, written as what is in it (its unit is in the model's type).
macro_rules! number {
    ($($ty:ident($inner:ty)),*) => { $(
        impl Form for $ty {
            type Disk<'a> = $inner;
            fn spell(&self, out: &mut Vec<u8>) {
                let $ty(number) = self;
                json::number(*number, out);
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
            fn spell(&self, out: &mut Vec<u8>) {
                $disk(*self).spell(out);
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
    fn spell(&self, out: &mut Vec<u8>) {
        json::text(self, out);
    }
    fn from_disk(disk: Cow<'_, str>) -> String {
        disk.into_owned()
    }
}

impl Form for Arc<str> {
    type Disk<'a> = Cow<'a, str>;
    fn spell(&self, out: &mut Vec<u8>) {
        json::text(self, out);
    }
    fn from_disk(disk: Cow<'_, str>) -> Arc<str> {
        disk.into()
    }
}

impl Form for Arc<Path> {
    type Disk<'a> = Cow<'a, str>;
    fn spell(&self, out: &mut Vec<u8>) {
        json::text(&self.to_string_lossy(), out);
    }
    fn from_disk(disk: Cow<'_, str>) -> Arc<Path> {
        Path::new(&*disk).into()
    }
}

impl Form for ShardId {
    type Disk<'a> = Name<'a>;
    fn spell(&self, out: &mut Vec<u8>) {
        Name::spell(self, out);
    }
    fn from_disk(disk: Name<'_>) -> ShardId {
        disk.0.into_owned()
    }
}

impl<T: Form> Form for Option<T> {
    type Disk<'a> = Option<T::Disk<'a>>;
    fn spell(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.spell(out),
            None => out.extend_from_slice(b"null"),
        }
    }
    fn from_disk(disk: Self::Disk<'_>) -> Self {
        disk.map(T::from_disk)
    }
}

impl<T: Form> Form for Box<T> {
    type Disk<'a> = T::Disk<'a>;
    fn spell(&self, out: &mut Vec<u8>) {
        T::spell(self, out);
    }
    fn from_disk(disk: Self::Disk<'_>) -> Self {
        Box::new(T::from_disk(disk))
    }
}

impl<T: Form> Form for Vec<T> {
    type Disk<'a> = Vec<T::Disk<'a>>;
    fn spell(&self, out: &mut Vec<u8>) {
        json::list(*b"[]", out, |out| {
            for value in self {
                value.spell(out);
                out.push(b',');
            }
        });
    }
    fn from_disk(disk: Self::Disk<'_>) -> Self {
        disk.into_iter().map(T::from_disk).collect()
    }
}

impl<T: Form> Form for BTreeMap<String, T> {
    type Disk<'a> = BTreeMap<Cow<'a, str>, T::Disk<'a>>;
    fn spell(&self, out: &mut Vec<u8>) {
        json::list(*b"{}", out, |out| {
            for (key, value) in self {
                json::text(key, out);
                out.push(b':');
                value.spell(out);
                out.push(b',');
            }
        });
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

impl Blank for Arc<str> {
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

/// `(GPUs, when)` of what was learned: named on disk, a pair in the model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskOwnGpus {
    gpus: Option<u32>,
    at: Moment,
}

impl Form for (Option<u32>, Time) {
    type Disk<'a> = DiskOwnGpus;
    fn spell(&self, out: &mut Vec<u8>) {
        let (gpus, at) = self;
        fields!(out; gpus, at);
    }
    fn from_disk(disk: DiskOwnGpus) -> Self {
        let DiskOwnGpus { gpus, at: Moment(at) } = disk;
        (gpus, at)
    }
}
