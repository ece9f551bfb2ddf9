"""What a policy is asked, what it answers, and the pool of blocks that it decides over."""
