"""Who is told of new states: subscriptions, and the notifications that did not arrive."""
