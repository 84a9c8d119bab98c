"""The page: one self-contained HTML file that shows a profile, several, or a history, and asks nothing of the network."""
