"""One measurement by many processes: a process group, or shards that leave files; both add up the same sums."""
