"""Lessons: builders that are wrong in one line, and questions to guess before one sees."""
