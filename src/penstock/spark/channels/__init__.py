"""Channels: durable logs between queries, directories of Arrow files with a commit log."""
