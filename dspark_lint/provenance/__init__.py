"""Provenance: the contracts' citations held against a source tree, and the next release's file scaffolded from one.

Source is read as text and parsed with ast; nothing of it is ever imported.
"""

from __future__ import annotations
