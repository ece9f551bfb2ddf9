"""Plans that a stream's filter admits: who fits, who does not, and what a short window carries."""
