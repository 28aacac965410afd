//! A place in the sorted set of a log or of leases.

use super::api::{OK, api};
use super::key::{Holds, Key};
use super::module_string::ModuleString;
use crate::limiter::Foreign;
use crate::limiter::lease::Lease;
use crate::limiter::log::{self, Entry, Member};

/// A place in the set of an open key. The set cannot change while it stands.
#[derive(Debug)]
pub struct Cursor<'k, 'a> {
    key: &'k mut Key<'a>,
}

impl<'k, 'a> Cursor<'k, 'a> {
    /// At the first element after `above`, in a range up to `through`; `None` where nothing is.
    pub(super) fn first(key: &'k mut Key<'a>, above: f64, through: f64) -> Option<Self> {
        if key.holds() == Holds::Nothing {
            return None;
        }
        // SAFETY: the key is open and held something; if it no longer does, the call fails.
        let status = unsafe {
            api!(RedisModule_ZsetFirstInScoreRange(
                key.raw(),
                above,
                through,
                1,
                0
            ))
        };
        (status == OK).then_some(Self { key })
    }

    /// At the first element of all; `None` where nothing is.
    pub(super) fn oldest(key: &'k mut Key<'a>) -> Option<Self> {
        if key.holds() == Holds::Nothing {
            return None;
        }
        // SAFETY: as in `first`.
        let status = unsafe {
            api!(RedisModule_ZsetFirstInScoreRange(
                key.raw(),
                f64::NEG_INFINITY,
                f64::INFINITY,
                0,
                0
            ))
        };
        (status == OK).then_some(Self { key })
    }

    /// At the last element; `None` where nothing is.
    pub(super) fn last(key: &'k mut Key<'a>) -> Option<Self> {
        if key.holds() == Holds::Nothing {
            return None;
        }
        // SAFETY: as in `first`.
        let status = unsafe {
            api!(RedisModule_ZsetLastInScoreRange(
                key.raw(),
                f64::NEG_INFINITY,
                f64::INFINITY,
                0,
                0
            ))
        };
        (status == OK).then_some(Self { key })
    }

    /// The score and the member; `None` where the range is empty.
    #[inline]
    pub(super) fn element(&mut self) -> Option<(f64, ModuleString<'a>)> {
        let mut score = 0.0;
        // SAFETY: the key has a cursor. The server answers null past the end, and otherwise a
        // string that is ours to free.
        unsafe {
            let member = api!(RedisModule_ZsetRangeCurrentElement(
                self.key.raw(),
                &raw mut score
            ));
            ModuleString::adopt(self.key.ctx, member).map(|member| (score, member))
        }
    }

    /// The newest entry of a log, where the cursor is at the last element.
    ///
    /// # Errors
    /// [`Foreign`] if a log did not write it.
    pub(super) fn entry(&mut self) -> Result<Option<Entry>, Foreign> {
        let element = self.element();
        let entry = element.map(|(score, member)| Member::read(score, member.bytes())?.single());
        entry.transpose()
    }

    /// The lease.
    ///
    /// # Errors
    /// [`Foreign`] if it was not written as one.
    pub(super) fn lease(&mut self) -> Result<Option<Lease>, Foreign> {
        let Some((score, member)) = self.element() else {
            return Ok(None);
        };
        match Lease::parse(score, member.bytes()) {
            Some(lease) => Ok(Some(lease)),
            None if Member::read(score, member.bytes()).is_ok() => Err(Foreign::LeasesOfLog),
            None => Err(Foreign::Lease),
        }
    }

    /// Moves on; `false`, and no move, where the range ends.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        // SAFETY: the key has a cursor.
        unsafe { api!(RedisModule_ZsetRangeNext(self.key.raw())) == 1 }
    }

    /// Moves back; `false`, and no move, where the range begins.
    #[inline]
    pub(super) fn retreat(&mut self) -> bool {
        // SAFETY: the key has a cursor.
        unsafe { api!(RedisModule_ZsetRangePrev(self.key.raw())) == 1 }
    }
}

impl<'a> log::Cursor for Cursor<'_, 'a> {
    type Text = ModuleString<'a>;

    #[inline]
    fn element(&mut self) -> Option<(f64, ModuleString<'a>)> {
        self.element()
    }

    #[inline]
    fn advance(&mut self) -> bool {
        self.advance()
    }

    #[inline]
    fn retreat(&mut self) -> bool {
        self.retreat()
    }
}
