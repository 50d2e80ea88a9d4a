"""Lists sentences of comments and pages that begin as a reader may have to read twice: with "Of", "What", "Those",
"Such", "That which", or "Where ... is". Questions and headings are left out.

A listed sentence is rewritten, or looked at and kept: then it stands in scripts/sentences_kept.txt, one a line, without
line numbers. Exits 1 when a sentence is not in that file.

usage: check_sentences.py [ROOT]
"""
import os
import re
import sys

import md_pages

KEPT = 'scripts/sentences_kept.txt'
SLASHES = re.compile(r'(?:^|\s)//[/!]?<?(?: |$)(.*)')
HASH = re.compile(r'(?:^|\s)#(?!!)(?: |$)(.*)')
# "Where" with an "is" before the first comma.
BEGINS = re.compile(r'(?:Of|What|Those|Such|That which)\b|Where\b[^,;:]*?\sis\b')
SENTENCE = re.compile(r'\S.*?(?:[.!?:](?=\s|$)|$)')


def comment_lines(text, pattern):
    """(line number, text of its comment or None)"""
    for number, line in enumerate(text.split('\n'), 1):
        found = pattern.search(line)
        yield number, found.group(1).strip() if found else None


def docstring_lines(text):
    """The same for texts in triple quotes."""
    inside = False
    for number, line in enumerate(text.split('\n'), 1):
        pieces = re.split(r'"""|\'\'\'', line)
        said = []
        for i, piece in enumerate(pieces):
            inside = inside if i == 0 else not inside
            if inside:
                said.append(piece)
        yield number, ' '.join(said).strip() if said else None


def page_lines(text):
    """Lines of prose; each item of a list, cell of a table and quotation begins anew."""
    for number, line in md_pages.outside_fences(text):
        item = re.match(r'\s*(?:[-*+>]|\d+\.)\s+(.*)', line)
        if line.startswith('|'):
            for cell in line.strip('| ').split('|'):
                yield number, None
                yield number, cell.strip()
        elif item:
            yield number, None
            yield number, item.group(1)
        else:
            is_prose = line.strip() and not line.startswith(('#', '<!--', '    '))
            yield number, line.strip() if is_prose else None


def readers(name):
    if name.endswith('.md'):
        return [page_lines]
    if name.endswith(('.h', '.cc')):
        return [lambda text: comment_lines(text, SLASHES)]
    if name.endswith('.cmake') or os.path.basename(name) == 'CMakeLists.txt':
        return [lambda text: comment_lines(text, HASH)]
    if name.endswith('.py'):
        return [lambda text: comment_lines(text, HASH), docstring_lines]
    return []


def texts(lines):
    """Lines that follow each other, joined: [(line number, line), ...]"""
    held = []
    for number, line in lines:
        if line:
            held.append((number, line))
        elif held:
            yield held
            held = []
    yield held


def sentences(lines):
    """(line number, sentence)"""
    for held in texts(lines):
        text = ' '.join(line for _, line in held)
        numbers = [number for number, line in held for _ in range(len(line) + 1)]   # of each character
        for found in SENTENCE.finditer(text):
            yield numbers[found.start()], found.group()


def listed(root, name):
    text = md_pages.read(os.path.join(root, name))
    for reader in readers(name):
        for number, sentence in sentences(reader(text)):
            plain = sentence.lstrip('*_"`(').rstrip()
            if BEGINS.match(plain) and not plain.endswith('?'):
                yield number, sentence


def kept(root):
    path = os.path.join(root, KEPT)
    lines = md_pages.read(path).split('\n') if os.path.exists(path) else []
    return {line for line in lines if line and not line.startswith('#')}


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else md_pages.root()
    names = [name for name in md_pages.tracked(root) if readers(name)]
    known, used, new = kept(root), set(), []
    for name in names:
        for number, sentence in listed(root, name):
            used.add(sentence)
            if sentence not in known:
                new.append(f'{name}:{number}: {sentence}')
    new += [f'{KEPT}: not in the tree any more: {sentence}' for sentence in sorted(known - used)]
    print('\n'.join(new) if new else f'check_sentences.py: {len(names)} files, {len(used)} sentences kept')
    if new:
        print(f'check_sentences.py: {len(new)} sentences (try: another beginning, or the sentence in {KEPT})')
    return 1 if new else 0


if __name__ == '__main__':
    sys.exit(main())
