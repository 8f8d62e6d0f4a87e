"""Free texts: transcriptions, translations, answers of language models."""
