"""The web page over the history, live or old."""
