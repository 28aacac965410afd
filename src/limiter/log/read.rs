//! Reading a log's entries from its sorted set.

use super::entry::Entry;
use super::member::Member;
use super::set::{Cursor, SortedSet};
use crate::limiter::Foreign;
use crate::limiter::units::Timestamp;

/// The latest entry, which is never packed.
///
/// # Errors
/// [`Foreign`] when what stands there is no entry of a log; so for every other read.
#[inline]
pub fn newest<S: SortedSet>(set: &mut S) -> Result<Option<Entry>, Foreign> {
    let last = set.last().and_then(|mut cursor| cursor.element());
    match last {
        Some((score, text)) => Ok(Some(Member::read(score, text.as_ref())?.single()?)),
        None => Ok(None),
    }
}

/// The earliest entry later than `time`.
///
/// # Errors
/// As for [`newest`].
#[inline]
pub fn first_after<S: SortedSet>(set: &mut S, time: Timestamp) -> Result<Option<Entry>, Foreign> {
    let first = set
        .first_after(time)
        .and_then(|mut cursor| cursor.element());
    let Some((score, text)) = first else {
        return Ok(None);
    };
    let member = Member::read(score, text.as_ref())?;
    Ok(Some(member.first_after(time)?))
}

/// Shows the members that end later than `time` to `visit`, the oldest first, while it asks for more.
///
/// # Errors
/// As for [`newest`], and those of `visit`.
pub fn members_after<S: SortedSet>(
    set: &mut S,
    time: Timestamp,
    mut visit: impl FnMut(&Member<'_>) -> Result<bool, Foreign>,
) -> Result<(), Foreign> {
    let Some(mut cursor) = set.first_after(time) else {
        return Ok(());
    };
    while let Some((score, text)) = cursor.element() {
        let member = Member::read(score, text.as_ref())?;
        if !visit(&member)? || !cursor.advance() {
            break;
        }
    }
    Ok(())
}

/// A member that has been read whole.
#[derive(Debug)]
pub struct Unpacked<T> {
    /// As it is stored.
    pub text: T,
    /// All its entries, the oldest first.
    pub entries: Vec<Entry>,
}

impl<T: AsRef<[u8]>> Unpacked<T> {
    fn read(score: f64, text: T) -> Result<Self, Foreign> {
        let member = Member::read(score, text.as_ref())?;
        let mut entries = member.entries().collect::<Result<Vec<_>, _>>()?;
        entries.reverse();
        Ok(Self { text, entries })
    }
}

/// Reads members whole, the newest first, while `more` asks for another one.
///
/// # Errors
/// As for [`newest`]; also where a member reaches into the one after it.
pub fn unpack_newest<S: SortedSet>(
    set: &mut S,
    mut more: impl FnMut(&Unpacked<S::Text>) -> bool,
) -> Result<Vec<Unpacked<S::Text>>, Foreign> {
    let mut members = Vec::<Unpacked<S::Text>>::new();
    let Some(mut cursor) = set.last() else {
        return Ok(members);
    };
    while let Some((score, text)) = cursor.element() {
        let member = Unpacked::read(score, text)?;
        match (members.last(), &*member.entries) {
            (None, [_]) => {}
            (Some(later), [.., newest])
                if later
                    .entries
                    .first()
                    .is_some_and(|later| newest.time <= later.time) => {}
            _ => return Err(Foreign::Log),
        }
        let goes_on = more(&member);
        members.push(member);
        if !goes_on || !cursor.retreat() {
            break;
        }
    }
    Ok(members)
}

/// Reads the member before the newest `count` ones whole; `None` if there is none.
///
/// # Errors
/// As for [`newest`].
pub fn unpack_before<S: SortedSet>(
    set: &mut S,
    count: usize,
) -> Result<Option<Unpacked<S::Text>>, Foreign> {
    let Some(mut cursor) = set.last() else {
        return Ok(None);
    };
    if !(0..count).all(|_| cursor.retreat()) {
        return Ok(None);
    }
    let element = cursor.element();
    element
        .map(|(score, text)| Unpacked::read(score, text))
        .transpose()
}
