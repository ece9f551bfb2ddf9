"""The way in: batches are judged, routed and made durable."""
