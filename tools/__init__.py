"""Programs that Headrace's developers run; nothing here is shipped."""
