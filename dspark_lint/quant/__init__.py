"""Quantization: what the checkpoint states, which modules it reaches under one release, what those keep on disk.

Imported only where a checkpoint states a quantization or keeps weights that are quantized.
"""
