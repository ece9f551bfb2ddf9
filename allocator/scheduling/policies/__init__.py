"""Rules that decide a request when it comes, one file each."""
