"""The parts of `make site`: run the pages, write them as files, and link them."""
