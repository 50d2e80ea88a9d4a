"""Rounds a head's channels as storing them in a KV type and reading them back does, for the oracle's Memory.

Written from docs/numerics.md and ggml's block formats; it shares no code with the engine. Numbers are rounded from the
float32 that the engine has in hand, so that both decide alike but for the last bits of that float32.
"""
import numpy as np

from model_files import narrow, widen

BLOCK = 32


def stored_f16(x):
    return np.clip(x, -65504, 65504).astype('<f2').astype(np.float64)


def stored_bf16(x):
    return widen('BF16', narrow('BF16', x))


def in_blocks(x):
    """[..., channels] as [..., blocks, 32]; the last block of a head is filled up with zeros."""
    room = [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % BLOCK)]
    return np.pad(x, room).reshape(*x.shape[:-1], -1, BLOCK)


def closest(x, most, first, step):
    """Blocks in whole steps of the scale, of 16, that leaves the least squared error; scales are 16-bit floats."""
    blocks = in_blocks(x)
    high, low = blocks.max(-1, keepdims=True), blocks.min(-1, keepdims=True)
    extreme = np.where(-low > high, low, high)
    best, least = np.zeros(blocks.shape), np.full(extreme.shape, np.inf)
    with np.errstate(divide='ignore', invalid='ignore'):
        for t in range(16):
            scale = (extreme / np.float32(step * t - first)).astype('<f2').astype('<f4')
            whole = np.where(scale == 0, np.float32(0), np.rint(blocks * (np.float32(1) / scale)))
            stored = np.clip(whole, -most, most - 1).astype('<f4') * scale
            loss = np.cumsum((blocks - stored) ** 2, axis=-1, dtype='<f4')[..., -1:]      # in the order of channels
            best = np.where(loss < least, stored.astype(np.float64), best)
            least = np.minimum(loss, least)
    return best.reshape(*x.shape[:-1], -1)[..., :x.shape[-1]]


def stored_q8_0(x):
    return closest(x, 128, 128, 0.5)


def stored_q4_0(x):
    return closest(x, 8, 9, 0.25)


def hadamard(width):
    """Sylvester's matrix of the largest power of two that divides the width, normalised, along the diagonal."""
    order, matrix = 1, np.ones((1, 1))
    while width % (2 * order) == 0:
        order, matrix = 2 * order, np.kron([[1, 1], [1, -1]], matrix) / np.sqrt(2)
    return np.kron(np.eye(width // order), matrix)


def kept(stored, rotated=False):
    """A function of float64 heads [..., channels]. To turn K and V back is the same as to turn Q and the output."""
    def keep(heads):
        turn = hadamard(heads.shape[-1]) if rotated else np.eye(heads.shape[-1])
        return stored((heads @ turn).astype('<f4')) @ turn
    return keep


KV_TYPES = {'f16': kept(stored_f16), 'bf16': kept(stored_bf16), 'q8_0': kept(stored_q8_0), 'q4_0': kept(stored_q4_0),
            'q4_0h': kept(stored_q4_0, rotated=True)}
