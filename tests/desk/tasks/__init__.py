"""Tasks from real services' documents, on which minds are evaluated; prompts never saw
them. Names and shapes are facts of those documents, data and words are our own."""
