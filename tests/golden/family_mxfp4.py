"""MXFP4 as gpt-oss ships it: blocks of 32 numbers along a row, four bits each, and one power of two per block.

Folders store `blocks` [rows][blocks][16], where byte j has elements 2j (low bits) and 2j + 1, and `scales`
[rows][blocks]. GGUF stores 17 bytes per block: the scale, then bytes with elements j and j + 16. Specification:
https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf.
"""
import numpy as np

VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])     # of the low three bits; the fourth is the sign
BIAS = 127
PARTS = ('gate_up_proj', 'down_proj')     # of mlp.experts, [experts][in][out]


def encode(rows):
    """Returns (four bits of each element, uint8 [..., blocks, 32], scales, uint8 [..., blocks]), each number to the
    nearest."""
    blocks = rows.reshape(*rows.shape[:-1], -1, 32)
    largest = np.maximum(np.abs(blocks).max(-1), 2.0 ** -100)
    power = np.ceil(np.log2(largest / VALUES[-1]))
    scaled = blocks / 2.0 ** power[..., None]
    bits = np.abs(np.abs(scaled)[..., None] - VALUES).argmin(-1)
    return (bits + 8 * (scaled < 0)).astype(np.uint8), (power + BIAS).astype(np.uint8)


def decode(bits, scales):
    values = np.concatenate([VALUES, -VALUES])[bits] * 2.0 ** (scales.astype(int) - BIAS)[..., None]
    return values.reshape(*values.shape[:-2], -1)


def rounded(weights):
    """Returns the weights with their experts rounded as by storing them."""
    return {name: decode(*encode(array.swapaxes(1, 2))).swapaxes(1, 2) if name.endswith(PARTS) else array
            for name, array in weights.items()}


def folder_tensors(weights):
    """Returns experts as blocks and scales of rows [out][in]; requires rounded numbers."""
    out = {}
    for name, array in weights.items():
        if name.endswith(PARTS):
            bits, scales = encode(array.swapaxes(1, 2))
            out |= {name + '_blocks': bits[..., 0::2] | bits[..., 1::2] << 4, name + '_scales': scales}
        else:
            out[name] = array
    return out


def from_folder(weights):
    """The reverse: float experts [in][out]."""
    out = dict(weights)
    for name in [name for name in weights if name.endswith('_blocks')]:
        stem = name.removesuffix('_blocks')
        packed, scales = (out.pop(stem + part).astype(np.uint8) for part in ('_blocks', '_scales'))
        bits = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], 32)
        out[stem] = decode(bits, scales).swapaxes(1, 2)
    return out


def gguf_blocks(rows):
    """Returns an array of 17-byte elements, one per block."""
    bits, scales = encode(rows)
    packed = np.concatenate([scales[..., None], bits[..., :16] | bits[..., 16:] << 4], -1)
    return np.ascontiguousarray(packed).view('V17')[..., 0]
