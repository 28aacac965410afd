//! A cluster of six nodes: slots that migrate under load, and a primary that dies.

mod death;
mod migration;
mod nodes;
