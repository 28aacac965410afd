//! Data written by earlier versions stays readable.
