//! What a promoted replica knows of the calls that its primary had acknowledged.
