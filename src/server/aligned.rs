//! The server's allocator with the alignment that C promises, for servers that do not keep it.
//!
//! Built against musl with its own malloc, a server puts a size of 8 bytes before each piece of memory, so
//! that what it hands out is aligned by 8. Unwinding writes to the exception that a panic allocates with instructions
//! that need 16, although Rust asks for 8: the first panic would end the server.

use std::alloc::{GlobalAlloc, Layout};

/// What C's malloc aligns by.
const ALIGNMENT: usize = 16;

/// The server's allocator, aligned by 16. Each piece of memory takes 16 bytes more.
#[cfg(not(test))]
#[derive(Clone, Copy, Debug)]
pub struct AlignedAlloc;

// SAFETY: it hands out what `Aligned` does, on the server's allocator.
#[cfg(not(test))]
unsafe impl GlobalAlloc for AlignedAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same promises.
        unsafe { Aligned(redis_module::alloc::RedisAlloc).alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the same promises.
        unsafe { Aligned(redis_module::alloc::RedisAlloc).dealloc(memory, layout) }
    }
}

/// An allocator of memory aligned by 16, on one that aligns by 8 or more.
struct Aligned<A>(A);

impl<A: GlobalAlloc> Aligned<A> {
    /// # Safety
    /// As [`GlobalAlloc::alloc`].
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(padded) = padded(layout) else {
            return std::ptr::null_mut();
        };
        // SAFETY: the layout's size is not 0, as it is larger than the padding.
        let whole = unsafe { self.0.alloc(padded) };
        if whole.is_null() {
            return whole;
        }
        // From 1 to 16 bytes on lies the next aligned address; it is 8 or 16 here.
        let padding = ALIGNMENT - whole.addr() % ALIGNMENT;
        // SAFETY: the padding is within the memory, and there is a byte before it ends.
        unsafe {
            let memory = whole.add(padding);
            memory.sub(1).write(u8::try_from(padding).unwrap_or(0));
            memory
        }
    }

    /// # Safety
    /// As [`GlobalAlloc::dealloc`], for memory of [`Self::alloc`].
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if let Some(padded) = padded(layout) {
            // SAFETY: `alloc` has written the padding there.
            unsafe {
                let padding = usize::from(memory.sub(1).read());
                self.0.dealloc(memory.sub(padding), padded);
            }
        }
    }
}

/// What is asked of the allocator below; `None` if no address space has room for it, or if more than
/// 16 is asked, which nothing in the module does.
fn padded(layout: Layout) -> Option<Layout> {
    if layout.align() > ALIGNMENT {
        return None;
    }
    let size = layout.size().checked_add(ALIGNMENT)?;
    Layout::from_size_align(size, layout.align()).ok()
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    use super::Aligned;

    /// Hands out what lies `offset` bytes after an aligned address, and takes nothing else back.
    struct Offset {
        offset: usize,
        held: Cell<usize>,
    }

    // SAFETY: it hands out parts of what the system's allocator does.
    unsafe impl GlobalAlloc for Offset {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let whole = Layout::from_size_align(layout.size() + self.offset, 16).unwrap();
            self.held.set(self.held.get() + 1);
            // SAFETY: the layout has room for the offset.
            unsafe { System.alloc(whole).add(self.offset) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            assert_eq!(memory.addr() % 16, self.offset);
            let whole = Layout::from_size_align(layout.size() + self.offset, 16).unwrap();
            self.held.set(self.held.get() - 1);
            // SAFETY: `alloc` made it so.
            unsafe { System.dealloc(memory.sub(self.offset), whole) }
        }
    }

    #[test]
    fn memory_is_aligned_and_given_back_as_it_came() {
        for offset in [0, 8] {
            let aligned = Aligned(Offset {
                offset,
                held: Cell::new(0),
            });
            for (size, align) in [(1, 1), (24, 8), (56, 8), (4096, 16)] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the memory is used within its size and given back once.
                unsafe {
                    let memory = aligned.alloc(layout);
                    assert_eq!(memory.addr() % 16, 0, "{layout:?} after {offset}");
                    memory.write_bytes(0xff, size);
                    assert_eq!(aligned.0.held.get(), 1);
                    aligned.dealloc(memory, layout);
                }
                assert_eq!(aligned.0.held.get(), 0);
            }
        }
    }

    #[test]
    fn what_no_server_can_hold_is_refused() {
        let aligned = Aligned(System);
        let largest = usize::try_from(isize::MAX).unwrap();
        for (size, align) in [(largest, 1), (64, 32)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: nothing is used of what is refused.
            assert!(unsafe { aligned.alloc(layout) }.is_null());
        }
    }
}
