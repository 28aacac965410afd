//! The module under memcheck: no invalid access, and nothing lost.
