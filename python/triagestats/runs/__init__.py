"""Two runs of an evaluation beside each other: aligned, paired, by cluster, and a gate for CI."""
