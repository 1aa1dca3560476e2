"""What the workbook's pages are built from: a theme, four forms of picture, parts of a page, the kernel's source."""
