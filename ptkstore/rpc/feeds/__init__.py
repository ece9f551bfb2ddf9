"""What servers tell: watchers of PTKs, and subscribers that are called."""
