"""What the workbook's pages are built from: a theme, four forms of picture, the parts of a page, the kernel's source."""
