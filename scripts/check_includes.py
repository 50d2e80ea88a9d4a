"""Checks that includes go down only (the layers are listed in CONTRIBUTING.md). Exits 1 and names each wrong edge.

usage: check_includes.py [ROOT]

Public headers (<kvasir/...>) may be included by every layer; they themselves include only <kvasir/...>, <tl/...> and
standard headers, declare no type that they do not define (but for implementations, NAMEImpl), and are fourteen at most.
These include only public headers and base: cli, hub, lab, serve, bench, python. Tests
(x_test.cc, tests/) may include anything; nothing else may include a test's header.
"""
import os
import re
import sys

# The layers that each layer includes directly; it may include what those include too. tier and share sit on top of cache.
EDGES = {
    'base': (),
    'dtype': ('base',),
    'math': ('dtype',),
    'cache': ('math',),
    'cache/share': ('cache',),
    'cache/tier': ('cache',),
    'format': ('dtype',),
    'token': ('base',),
    'chat': ('token', 'format'),
    'arch': ('cache', 'format'),
    'engine': ('arch', 'token', 'cache/share', 'cache/tier'),
    'lab': ('engine',),
    'sched': ('engine',),
    'serve': ('sched',),
    'hub': ('base',),
    'cli': ('serve', 'lab', 'hub'),
    'bench': ('serve', 'lab'),
    'python': ('serve',),
}
# These see public headers, base, and each other along EDGES; the files named are the exceptions: they read and write
# files that no public header knows, or measure private kernels.
CLIENTS = ('cli', 'hub', 'lab', 'serve', 'bench', 'python')
EXCEPTIONS = re.compile(r'^src/lab/(quantize|synth|inspect)|^bench/kernels\.cc$')
MOST_PUBLIC_HEADERS = 14
DECLARED = re.compile(r'^(?:class|struct|enum class) (\w+);')
DEFINED = re.compile(r'^\s*(?:class|struct|enum class) (\w+)(?: final)?(?: : [^{;]*)?\s*\{', re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r'^[a-z_0-9]+$')           # <vector>, <cstdint>: no dot and no folder
SOURCE = re.compile(r'\.(h|cc|inc)$')
TEST = re.compile(r'_test(ing)?\.(cc|h)$|^tests/')


def below(layer):
    """Every layer that `layer` may include, itself among them."""
    seen, wanted = set(), [layer]
    while wanted:
        now = wanted.pop()
        if now not in seen:
            seen.add(now)
            wanted += EDGES[now]
    return seen


def visible(layer, path):
    """The layers that a file of `layer` may include."""
    if layer not in CLIENTS or EXCEPTIONS.search(path):
        return below(layer)
    return below(layer) & {'base', layer, *CLIENTS}


def layer_of(path):
    """Layer of a path relative to src/ (or of a file in bench/ or python/); None if its folder is not a layer."""
    parts = path.split('/')
    if '/'.join(parts[:2]) in EDGES and len(parts) > 2:
        return '/'.join(parts[:2])
    return parts[0] if parts[0] in EDGES and len(parts) > 1 else None


def includes(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found.group(1) == '"', found.group(2)


def check_public(root, path):
    for number, _, target in includes(root, path):
        if not (target.startswith(('kvasir/', 'tl/')) or STANDARD.match(target)):
            yield (f'{path}:{number}: public header -> {target} (try: a forward declaration, or a pointer to an '
                   'implementation that lives in src/)')


def check_declarations(root, paths):
    """Types that a user of the public headers cannot see."""
    texts = {}
    for path in paths:
        with open(os.path.join(root, path), encoding='utf-8') as file:
            texts[path] = file.read()
    defined = {name for text in texts.values() for name in DEFINED.findall(text)}
    for path, text in texts.items():
        for number, line in enumerate(text.split('\n'), 1):
            found = DECLARED.match(line)
            if found and found.group(1) not in defined and not found.group(1).endswith('Impl'):
                yield (f'{path}:{number}: {found.group(1)} is defined in src/, where no user of the header can see it '
                       '(try: a pointer to an implementation NAMEImpl, or a public type)')
    if len(paths) > MOST_PUBLIC_HEADERS:
        yield (f'include/kvasir:1: {len(paths)} public headers, {MOST_PUBLIC_HEADERS} at most (try: put what is '
               'declared where its user looks for it)')


def check_source(root, path):
    layer = layer_of(path.removeprefix('src/'))
    if layer is None:
        yield f'{path}:1: its folder is not a layer (try: one of {", ".join(EDGES)}; a new one goes into EDGES here)'
        return
    allowed = visible(layer, path)
    for number, quoted, target in includes(root, path):
        other = layer_of(target)
        where = f'{path}:{number}'
        if target.startswith('kvasir/'):
            if not os.path.exists(os.path.join(root, 'include', target)):
                yield f'{where}: {target} is not in include/ (try: "LAYER/file.h" for a header in src/)'
        elif target.startswith('generated/'):
            continue
        elif other is None and quoted:
            yield f'{where}: "{target}" has no layer (try: the path from src/, as in "base/file.h")'
        elif other is not None and TEST.search(target):
            yield f'{where}: {target} belongs to a test (try: move what is shared into a header without _test)'
        elif other is not None and other not in allowed:
            if layer in CLIENTS and other in below(layer):
                yield (f'{where}: {layer} -> {other} ("{target}"), and {layer} sees the public headers and base only '
                       '(try: include/kvasir, or add what is missing there)')
            else:
                yield (f'{where}: {layer} -> {other} ("{target}") goes up (try: move the declaration into {layer} or '
                       'below, or pass the value in from above)')


def sources(root, folder):
    for at, subfolders, names in os.walk(os.path.join(root, folder)):
        subfolders.sort()
        for name in sorted(names):
            if SOURCE.search(name):
                yield os.path.relpath(os.path.join(at, name), root)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    count, problems = 0, []
    headers = list(sources(root, 'include'))
    for path in headers:
        count += 1
        problems += check_public(root, path)
    problems += check_declarations(root, headers)
    for folder in ('src', 'bench', 'python'):
        for path in sources(root, folder):
            if not TEST.search(path):
                count += 1
                problems += check_source(root, path)
    print('\n'.join(problems) if problems else f'check_includes.py: {count} files, every include goes down')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
