#!/usr/bin/env python3
"""Draws the pictures of the documentation into docs/pictures: boxes, arrows and text, in light and in dark.

usage: draw_pictures.py [--check]

--check draws nothing: it fails when a committed picture differs from what would be drawn, and when a picture names a
file or folder that is not in the tree, or a class or function that is not in src/ or include/. verify.svg is drawn from
docs/pictures/verify.json, which holds the output of the command that it names.
"""
import json
import os
import re
import sys
from html import escape

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, 'docs/pictures')
WIDTH = 800

# Class: (property, light, dark). Everything else is shared.
COLOURS = {
    '.t': ('fill', '#1f2328', '#e6edf3'),
    '.m': ('fill', '#59636e', '#9198a1'),
    '.a': ('fill', '#0b5fc1', '#79b8ff'),
    '.g': ('fill', '#1a7f37', '#56d364'),
    '.box': ('stroke', '#8c959f', '#6e7681'),
    '.area': ('stroke', '#a8b0b8', '#57606a'),
    '.drop': ('stroke', '#0b5fc1', '#79b8ff'),
    '.own': ('stroke', '#b35900', '#f0a35e'),
    '.live': ('fill', '#0b5fc1', '#79b8ff'),
    '.dead': ('fill', '#d0d7de', '#373e47'),
    '.line': ('stroke', '#59636e', '#9198a1'),
    '.head': ('fill', '#59636e', '#9198a1'),
    '.lineA': ('stroke', '#0b5fc1', '#79b8ff'),
    '.headA': ('fill', '#0b5fc1', '#79b8ff'),
    '.left': ('fill', '#59636e', '#444c56'),
    '.right': ('fill', '#0b5fc1', '#1f6feb'),
}
SHAPES = ('text{font-family:sans-serif;font-size:13px}.b{font-weight:bold}.w{fill:#fff;font-weight:bold}'
          '.box,.area,.drop,.own{fill:none;stroke-width:1.3}.area,.drop{stroke-dasharray:5 4}'
          '.line,.lineA{fill:none;stroke-width:1.5}')


def style():
    light, dark = (''.join(f'{name}{{{prop}:{pair[i]}}}' for name, (prop, *pair) in COLOURS.items()) for i in (0, 1))
    return f'<style>{SHAPES}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>'


class Picture:
    """An SVG under construction. Names that name() and box() write are checked against the tree."""

    def __init__(self, height, title, width=WIDTH):
        self.names, self.words = [], []
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" role="img">', f'<title>{escape(title)}</title>', style()]

    def put(self, x, y, text, kind, anchor):
        at = '' if anchor == 'start' else f' text-anchor="{anchor}"'
        self.parts.append(f'<text x="{x}" y="{y}" class="{kind}"{at}>{escape(text)}</text>')

    def text(self, x, y, text, kind='t', anchor='start'):
        """Words of ours."""
        self.words.append(text)
        self.put(x, y, text, kind, anchor)

    def name(self, x, y, text, kind='t b', anchor='start'):
        """Names of the tree, separated by commas."""
        self.names += text.split(', ')
        self.put(x, y, text, kind, anchor)

    def rect(self, x, y, w, h, kind='box', round_by=5):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{round_by}" class="{kind}"/>')

    def box(self, x, y, w, h, name, *lines, kind='box'):
        """A box with a name of the tree in its first line and words below it."""
        self.rect(x, y, w, h, kind)
        top = y + h / 2 - 8.5 * len(lines) + 4.5
        self.name(x + w / 2, round(top, 1), name, 't b' if kind == 'box' else 'a b', 'middle')
        for i, line in enumerate(lines, 1):
            self.text(x + w / 2, round(top + 17 * i, 1), line, 'm', 'middle')

    def arrow(self, *points, kind=''):
        """A line through the points, all its parts horizontal or vertical, with a head at its end."""
        (x0, y0), (x1, y1) = points[-2:]
        dx, dy = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        stop = (x1 - 7 * dx, y1 - 7 * dy)
        path = 'M' + 'L'.join(f'{x} {y}' for x, y in (*points[:-1], stop))
        self.parts.append(f'<path d="{path}" class="line{kind}"/>')
        corners = [(x1, y1), (x1 - 9 * dx - 4.5 * dy, y1 - 9 * dy - 4.5 * dx),
                   (x1 - 9 * dx + 4.5 * dy, y1 - 9 * dy + 4.5 * dx)]
        self.parts.append(f'<path d="M{"L".join(f"{x} {y}" for x, y in corners)}z" class="head{kind}"/>')

    def svg(self):
        return '\n'.join([*self.parts, '</svg>', ''])


def layers():
    p = Picture(642, 'The layers of the source tree, and the four places where one new file adds something')
    left, mid, right, wide = 20, 190, 362, 318
    p.box(mid, 14, wide, 46, 'src/cli', 'one file per command')
    p.box(560, 14, 220, 46, 'bench', 'beside other engines')
    p.box(left, 80, 140, 46, 'src/hub', 'pull, list, rm')
    p.box(mid, 80, 146, 46, 'src/serve', 'HTTP, JSON')
    p.box(right, 80, 146, 46, 'src/lab', 'verify, bench, drift')
    p.arrow((263, 60), (263, 80)), p.arrow((435, 60), (435, 80)), p.arrow((190, 37), (90, 37), (90, 80))
    p.arrow((670, 60), (670, 103), (508, 103))
    p.rect(left, 142, 760, 30, 'area')
    p.name(34, 162, 'include/kvasir', 'a b')
    p.text(150, 162, 'the public API. What stands above it includes nothing else of the library, except src/base', 'm')
    p.arrow((263, 126), (263, 142)), p.arrow((435, 126), (435, 142))
    p.arrow((263, 172), (263, 188)), p.arrow((435, 172), (435, 252))
    p.box(mid, 188, 146, 46, 'src/sched', 'whose tokens, when')
    p.arrow((263, 234), (263, 252))
    p.box(mid, 252, wide, 46, 'src/engine', 'models, sessions, passes, generation')
    p.arrow((349, 298), (349, 318))
    p.box(mid, 318, wide, 46, 'src/arch', 'what a layer computes; the forward pass')
    p.box(left, 252, 130, 46, 'src/chat', 'templates, tools')
    p.box(46, 318, 104, 46, 'src/token', 'text to ids')
    p.arrow((98, 298), (98, 318)), p.arrow((190, 286), (170, 286), (170, 341), (150, 341))
    p.arrow((32, 298), (32, 407), (190, 407))
    p.box(mid, 384, 146, 112, 'src/format', 'model files:', 'bytes and names')
    p.box(right, 384, 146, 46, 'src/cache', 'where K and V live')
    p.box(right, 450, 146, 46, 'src/math', 'kernels, attention')
    p.arrow((263, 364), (263, 384)), p.arrow((435, 364), (435, 384)), p.arrow((435, 430), (435, 450))
    p.box(mid, 516, wide, 46, 'src/dtype', 'storage types, as codecs')
    p.arrow((263, 496), (263, 516)), p.arrow((435, 496), (435, 516))
    p.box(left, 582, 760, 46, 'src/base', 'memory, budgets, threads, files: every layer may use it')
    p.arrow((349, 562), (349, 582))
    p.text(670, 208, 'One new file here adds', 'a b', 'middle')
    p.text(670, 226, 'the thing, and no other file', 'a', 'middle')
    p.text(670, 244, 'is edited:', 'a', 'middle')
    for y, name, what in ((252, 'src/engine/sampling', 'a sampler'), (318, 'src/arch/families', 'a model family'),
                          (384, 'src/cache/layouts', 'a cache layout'), (516, 'src/dtype', 'a storage type')):
        p.box(560, y, 220, 46, name, what, kind='drop')
        p.arrow((560, y + 23), (508, y + 23), kind='A')
    return p


def token():
    p = Picture(812, 'The way of one token, from its id to the logits of the next one')
    p.text(200, 22, 'one decode step of one sequence', 'm b', 'middle')
    p.text(580, 22, 'what it calls below', 'm b', 'middle')
    p.rect(36, 250, 344, 368, 'area')
    p.text(52, 274, 'each layer, by', 'm')
    p.name(222, 274, 'src/arch/families', 'm')
    steps = ((34, 'Generator::next', 'the id, as a feed of its session'),
             (88, 'Feeding::next_items', 'the tokens that the cache lacks'),
             (142, 'Network::forward', 'a batch: ids, positions, caches'),
             (196, 'embed_rows', 'x [tokens, hidden]'),
             (300, 'rms_norm, linears', 'q, k and v: a row of [head_dim] for every head'),
             (354, 'rope', 'q and k rotated by their position'),
             (408, 'attend', '[heads, head_dim]: V rows, weighed'),
             (462, 'linear, add', 'back to [hidden], added to x'),
             (516, 'rms_norm, glu', '[ffn], or the experts that the token uses'),
             (570, 'linear, add', 'back to [hidden], added to x'),
             (636, 'Network::read_out', 'final norm, vocabulary head: logits [vocab]'),
             (704, 'Generator::take', 'receipt, text, end of the text'),
             (758, 'sample', 'the next id'))
    for y, name, what in steps:
        p.box(48, y, 320, 42, name, what)
    for (a, *_), (b, *_) in zip(steps, steps[1:]):
        p.arrow((208, a + 42), (208, b))
    p.arrow((48, 779), (16, 779), (16, 55), (48, 55))
    calls = ((142, 'Layout::prepare, Layout::apply', 'room for the new position, or an error'),
             (196, 'WeightSource::copy', 'the row of this id, as stored'),
             (300, 'Compute::matmul', 'weights times x, over the threads'),
             (354, 'Layout::write', 'k and v encoded into the row of the position'),
             (408, 'Layout::tiles', 'where the rows are: 64 positions a tile'),
             (462, 'Kernels::attend', 'each tile alone, merged in ascending order'),
             (636, 'Compute::matmul', 'every row of the vocabulary'),
             (690, 'Layout::commit', 'the cache is one position longer; once a pass'))
    for y, name, what in calls:
        p.box(440, y, 340, 42, name, what, kind='box')
    for y in (163, 217, 321, 657):
        p.arrow((368, y), (440, y))
    p.arrow((368, 420), (404, 420), (404, 375), (440, 375)), p.arrow((368, 429), (440, 429))
    p.arrow((368, 438), (404, 438), (404, 483), (440, 483)), p.arrow((368, 668), (404, 668), (404, 711), (440, 711))
    p.rect(440, 526, 340, 82, 'area')
    p.name(610, 548, 'Codec', 't b', 'middle')
    for i, line in enumerate(('how a row of weights, of K or of V is stored',
                              'and read; its scalar code defines the bits of', 'every product with it')):
        p.text(610, 566 + 17 * i, line, 'm', 'middle')
    return p


def cells(p, y, x, blocks, kind):
    """Blocks of 64 positions in a row, filled as far as they have rows."""
    for i, (label, rows) in enumerate(blocks):
        at = x + 128 * i
        p.rect(at, y, 120, 26, kind)
        p.rect(at + 1, y + 19, round(118 * rows / 64, 1), 6, 'live', 2)
        p.text(at + 60, y + 15, label, 't', 'middle')


def blocks():
    p = Picture(604, 'Sequences, their blocks, the tiles that a query sees, and the kernel')
    p.text(20, 22, '1  A sequence is a list of blocks; a fork shares them', 't b')
    p.text(20, 58, 'A, 200 positions', 't')
    cells(p, 40, 160, (('0 to 63', 64), ('64 to 127', 64), ('128 to 191', 64), ('192 to 199', 8)), 'box')
    p.text(20, 118, 'the pool', 't')
    p.name(20, 136, 'BlockPool', 'm')
    held = (('2 holders', 64, 'box'), ('2 holders', 64, 'box'), ('only A', 64, 'box'), ('only A', 8, 'box'),
            ('only B', 52, 'own'))
    for i, (label, rows, kind) in enumerate(held):
        cells(p, 108, 160 + 128 * i, ((label, rows),), kind)
    p.text(20, 194, 'B, forked from A', 't')
    p.text(20, 211, 'at 150, now 180', 't')
    cells(p, 182, 160, (('0 to 63', 64), ('64 to 127', 64), ('128 to 179', 52)), 'box')
    for x in (220, 348, 476, 604):
        p.arrow((x, 66), (x, 108))
    p.arrow((220, 182), (220, 134)), p.arrow((348, 182), (348, 134))
    p.arrow((476, 182), (476, 158), (732, 158), (732, 134))
    p.text(548, 180, 'B wrote 150 into a block that A held', 'm')
    p.text(548, 197, 'too: it first copied the 22 rows of', 'm')
    p.text(548, 214, '128 to 149, and went on in the copy.', 'm')
    p.text(20, 252, 'A block: for every layer 64 rows of K, then 64 rows of V. In one layer it is one tile.', 'm')
    p.text(20, 294, '2  A tile is 64 absolute positions; a window leaves some of its rows', 't b')
    p.text(20, 314, 'B computes position 179 in a layer with a window of 100: it sees 80 to 179. The bits of', 'm')
    p.name(597, 314, 'seen_rows', 't')
    p.text(673, 314, 'say which', 'm')
    p.text(20, 332, 'rows of a tile these are. The others are never read: they are not multiplied by zero.', 'm')
    seen = (('tile 0', 0, 0, 'no row is seen: skipped'), ('tile 64', 16, 64, '80 to 127: 48 rows'),
            ('tile 128', 0, 52, '128 to 179: 52 rows'))
    for i, (name, first, last, what) in enumerate(seen):
        x = 20 + 260 * i
        p.rect(x, 346, 240, 62, 'box')
        p.text(x + 12, 365, name, 't b')
        p.text(x + 228, 365, what, 'm', 'end')
        for row in range(64):
            p.rect(round(x + 10 + 3.44 * row, 2), 376, 2.6, 22, 'live' if first <= row < last else 'dead', 0)
    p.text(20, 450, '3  Each tile is computed alone,', 't b')
    p.text(20, 467, 'then merged in ascending order', 't b')
    p.box(280, 440, 240, 60, 'Kernels::attend_tile', 'm: largest score, l: sum of', 'exp(score - m), o: V, weighed')
    p.box(540, 440, 240, 60, 'Kernels::attend_tile', 'the same for tile 128,', 'perhaps on another thread')
    p.arrow((400, 408), (400, 440)), p.arrow((660, 408), (660, 440))
    p.box(410, 530, 240, 60, 'Kernels::merge_tiles', 'm, l and o of 64, then of 128;', 'o / l is the row of attention')
    p.arrow((460, 500), (460, 530)), p.arrow((600, 500), (600, 530))
    for i, line in enumerate(('So no bit depends on where a layout', 'puts its rows, on how a prompt was',
                              'cut into passes, on other sequences,', 'or on the number of threads.')):
        p.text(20, 497 + 17 * i, line, 'm')
    return p


def prefix_tree():
    p = Picture(546, 'The prefix tree: texts that are kept, a hit, a lease, an eviction')
    p.name(20, 24, 'PrefixTree', 't b')
    p.text(106, 24, 'a radix tree over token ids: tokens are compared, never hashes of them', 'm')
    p.rect(150, 40, 430, 44)
    p.text(365, 59, 'root: one for each space', 't b', 'middle')
    p.text(365, 76, 'model fingerprint, types of K and V, numerics, window, salt', 'm', 'middle')
    p.rect(220, 142, 290, 44)
    p.text(365, 161, 'inner node, depth 130', 't b', 'middle')
    p.text(365, 178, 'no cache of its own: leaves hold the rows', 'm', 'middle')
    p.arrow((365, 84), (365, 142))
    p.text(375, 108, '“You are a kind wizard ...”', 'a')
    p.text(375, 125, '130 tokens', 'm')
    for x, name, depth, used in ((40, 'leaf R', 210, 'used longest ago'), (400, 'leaf D', 300, 'used last')):
        p.rect(x, 258, 210, 44)
        p.text(x + 105, 277, f'{name}, depth {depth}', 't b', 'middle')
        p.text(x + 105, 294, used, 'm', 'middle')
    p.arrow((260, 186), (260, 222), (145, 222), (145, 258)), p.arrow((470, 186), (470, 222), (505, 222), (505, 258))
    p.text(20, 212, '“Who is the king?” ...', 'a'), p.text(515, 212, '“Tell me of dragons.” ...', 'a')
    p.text(20, 326, 'cache of R:', 't'), p.text(400, 326, 'cache of D:', 't')
    for x, count, own in ((100, 4, 2), (480, 5, 2)):
        for i in range(count):
            p.rect(x + 40 * i, 314, 34, 18, 'own' if i >= own else 'box', 3)
    p.text(20, 354, 'Blocks 0 and 1 are the same memory in both and count once; coloured ones belong to one text.', 'm')
    p.rect(20, 374, 370, 160, 'area')
    p.text(34, 396, 'Eviction, when bytes are needed', 't b')
    p.name(34, 415, 'PrefixTree::evict_block', 'm')
    for i, line in enumerate(('The leaf used longest ago loses one block at its end:',
                              'R is then a text of 192 tokens. The next time its',
                              'rest goes, back to depth 130, where D parts from it.',
                              'A cache that somebody holds is passed over, and so,',
                              'for a budget, is a block that a sequence holds too.')):
        p.text(34, 438 + 20 * i, line, 't')
    p.rect(410, 374, 370, 160, 'drop')
    p.text(424, 396, 'A hit, and its lease', 't b')
    p.name(424, 415, 'PrefixTree::find, PrefixTree::Hit', 'm')
    for i, line in enumerate(('A new text: “You are ... Tell me of elves.”',
                              'It has 133 tokens in common with D: any token may',
                              'be the place, not only the edge of a block. The new',
                              'session adopts 133 positions and computes the rest.',
                              'The lease: while somebody holds the hit, D stays.')):
        p.text(424, 438 + 20 * i, line, 't')
    p.arrow((695, 374), (695, 280), (610, 280), kind='A')
    return p


def verify():
    """The table of a real run, each group of its rows as a column."""
    with open(os.path.join(FOLDER, 'verify.json'), encoding='utf-8') as file:
        run = json.load(file)
    rows = [re.match(r'(\S+) +(\d+) +([\d,]+) +(\d+) +(\d+)$', line) for line in run['output'][1:-1]]
    rows = [row.groups() for row in rows]
    acts = ('batch', 'fork', 'truncate', 'prefix', 'snapshot', 'lookup', 'schedule')
    groups = (('every layout of the cache', [r for r in rows if r[0] not in acts and not re.search(r'[=]', r[0])]),
              ('what happens to sequences', [r for r in rows if r[0] in acts]),
              ('types of K and V, a window', [r for r in rows if '=' in r[0]]))
    p = Picture(290, f'{run["command"]}: {run["output"][-1]}')
    p.rect(1, 1, 798, 288, 'box', 8)
    p.text(20, 28, f'$ {run["command"]}', 't b')
    for i, (title, some) in enumerate(groups):
        x = 20 + 262 * i
        p.text(x, 60, title, 'a b')
        p.text(x + 162, 82, 'logits', 'm', 'end'), p.text(x + 234, 82, 'bits differ', 'm', 'end')
        for j, (name, _, logits, bits, _) in enumerate(some):
            y = 104 + 21 * j
            p.text(x, y, name, 't'), p.text(x + 162, y, logits, 't', 'end')
            p.text(x + 234, y, bits, 'g b' if bits == '0' else 't b', 'end')
    result, rest = run['output'][-1].split(': ', 1)
    p.text(20, 272, result, 'g b'), p.text(66, 272, rest, 't')
    return p


def badge(label, value):
    left, right = 7 * len(label) + 16, 8 * len(value) + 16
    p = Picture(22, f'{label}: {value}', left + right)
    p.rect(0, 0, left + 6, 22, 'left', 4), p.rect(left, 0, right, 22, 'right', 4)
    p.text(left / 2, 15.5, label, 'w', 'middle'), p.text(left + right / 2, 15.5, value, 'w', 'middle')
    return p


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def licence_badge():
    name, version = re.search(r'(Apache) License\s+Version (\d+\.\d+)', read('LICENSE')).groups()
    return badge('licence', f'{name}-{version}')


def version_badge():
    return badge('version', re.search(r'kVersion = "([^"]+)"', read('include/kvasir/version.h')).group(1))


PICTURES = {'layers': layers, 'token': token, 'blocks': blocks, 'prefix_tree': prefix_tree, 'verify': verify,
            'licence': licence_badge, 'version': version_badge}


def sources():
    """The text of every file of src/ and include/ that is no test."""
    texts = []
    for top in ('src', 'include'):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            texts += [read(os.path.join(folder, name)) for name in sorted(names)
                      if name.endswith(('.h', '.cc')) and not name.endswith('_test.cc')]
    return texts


def is_known(name, texts):
    """Whether the tree has this file or folder, or the sources this class, function or member of a class."""
    if '/' in name or os.path.exists(os.path.join(ROOT, name)):
        return os.path.exists(os.path.join(ROOT, name))
    owner, _, member = name.rpartition('::')
    if not owner:
        return any(re.search(rf'\b(class|struct|enum class)( KVASIR_API)? {name}\b|\b{name}\(', text) for text in texts)
    declared = re.compile(rf'\b(class|struct)( KVASIR_API)? {owner}\b[^;]*{{')
    used = re.compile(rf'\b{member}\(|\b\(\*{member}\)\(|\b(struct|class) {member}\b|\(\*{member}\)')
    return any(declared.search(text) and used.search(text) for text in texts)


# Words that are names, and so belong into name().
LOOKS_LIKE_A_NAME = re.compile(r'\w::\w|\w\(\)|\w\.(cc|h)\b|\w_\w')
ALLOWED = {'head_dim'}


def problems(name, picture, texts):
    path = os.path.join(FOLDER, name + '.svg')
    if not os.path.exists(path) or read(path) != picture.svg():
        yield f'docs/pictures/{name}.svg: not what scripts/draw_pictures.py draws (try: run it)'
    for known in sorted(set(picture.names)):
        if not is_known(known, texts):
            yield f'scripts/draw_pictures.py: {name} names "{known}", which is not in the tree'
    for word in (w for words in picture.words for w in re.split(r'[\s,\[\]:;]+', words)):
        if name != 'verify' and LOOKS_LIKE_A_NAME.search(word) and word not in ALLOWED:
            yield f'scripts/draw_pictures.py: {name} has "{word}" as words, so that nothing checks it (try: name())'


def main():
    if sys.argv[1:] not in ([], ['--check']):
        sys.exit(__doc__)
    pictures = {name: draw() for name, draw in PICTURES.items()}
    if not sys.argv[1:]:
        for name, picture in pictures.items():
            with open(os.path.join(FOLDER, name + '.svg'), 'w', encoding='utf-8') as file:
                file.write(picture.svg())
        return 0
    texts = sources()
    found = [line for name, picture in pictures.items() for line in problems(name, picture, texts)]
    print('\n'.join(found) if found else f'draw_pictures.py: {len(pictures)} pictures, as drawn, of names that exist')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
