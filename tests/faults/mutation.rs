//! Stored data changed bit by bit under the module.
