"""Sessions, tasks, messages, groups and triggers, all pure; nothing is here yet."""
