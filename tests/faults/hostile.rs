//! Generated commands of every kind of wrong: the server lives, and an error changes nothing.
