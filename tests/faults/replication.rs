//! Primary and replicas agree after partitions.
