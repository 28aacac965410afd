//! What a killed server finds again: every admission that it had acknowledged.
