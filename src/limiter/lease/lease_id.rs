//! Whose lease it is.

use smallvec::SmallVec;

/// The longest id, in bytes.
pub const MAX_ID_BYTES: usize = 128;

/// How members of leases begin, and no member of a log does.
const MARK: u8 = b'@';

/// Who holds a lease: 1 to [`MAX_ID_BYTES`] bytes of any value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseId {
    /// `@` and the id, as it is stored.
    member: SmallVec<[u8; 64]>,
}

impl LeaseId {
    /// `None` for no bytes and for more than [`MAX_ID_BYTES`].
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut member = SmallVec::with_capacity(1 + id.len());
        member.push(MARK);
        member.extend_from_slice(id);
        (1..=MAX_ID_BYTES)
            .contains(&id.len())
            .then_some(Self { member })
    }

    /// Reads a member; `None` for anything that is not `@` and an id.
    pub fn parse(member: &[u8]) -> Option<Self> {
        Self::new(member.strip_prefix(&[MARK])?)
    }

    /// The member `@<id>`.
    pub fn member(&self) -> &[u8] {
        &self.member
    }
}

#[cfg(test)]
mod tests {
    use super::{LeaseId, MAX_ID_BYTES};
    use proptest::prelude::*;

    #[test]
    fn refuses_what_it_did_not_write() {
        let long = [&b"@"[..], &[b'x'; MAX_ID_BYTES + 1]].concat();
        for member in [&b""[..], b"@", b"x", b"1:1", &long] {
            assert_eq!(LeaseId::parse(member), None, "{member:?}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(id in prop::collection::vec(any::<u8>(), 1..=MAX_ID_BYTES)) {
            let made = LeaseId::new(&id).unwrap();
            prop_assert_eq!(made.member(), [&b"@"[..], &id].concat());
            prop_assert_eq!(LeaseId::parse(made.member()), Some(made));
        }
    }
}
