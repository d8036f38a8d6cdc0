"""The loop: observe, decide, act, remember; its guards and its ports."""
