"""Triage: direction of error, concentration, comparators, boards, gaps of methods, published studies."""
