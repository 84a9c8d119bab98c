"""The pages on the papers' figures, in Markdown: an index that opens with what was found, and a short page per figure."""
