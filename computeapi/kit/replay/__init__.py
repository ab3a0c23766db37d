"""`computeapi replay`: what was asked of one cloud is asked of another one, or of two, and answers are compared."""
