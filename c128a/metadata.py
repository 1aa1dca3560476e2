"""C128A top-k metadata: the function of the report, and the builder an engine holds."""

from c128a.build import build_c128a_topk_metadata, build_with_row_loop
from c128a.builder import C128AMetadata, C128AMetadataBuilder

__all__ = ["C128AMetadata", "C128AMetadataBuilder", "build_c128a_topk_metadata", "build_with_row_loop"]
