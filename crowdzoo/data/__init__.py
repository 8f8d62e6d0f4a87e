"""Values that open no file: annotations, rankings, sentences, tags, kinds of labels."""
