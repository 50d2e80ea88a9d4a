"""Fails if a text of the repository contains a path of one machine or a word left over from work in progress.

usage: check_words.py [ROOT]
"""
import os
import re
import subprocess
import sys

# Written in pieces so that this file passes its own check.
FOLDERS = ('wo' 'rk', 'ho' 'me', 'ro' 'ot')
LEFTOVERS = ('TO' 'DO', 'FIX' 'ME', 'XX' 'X')
PATTERNS = (
    (re.compile(r'(?<![\w.~$})-])/(?:' + '|'.join(FOLDERS) + r')/'), 'an absolute path of one machine',
     'a path relative to the repository or the working directory'),
    (re.compile(r'\b(?:' + '|'.join(LEFTOVERS) + r')\b'), 'a word left over from work in progress',
     'do it now, or open an issue'),
)
# Vocabularies and weights are data, not text of the project.
DATA = re.compile(r'(^|/)(tokenizer\.json|.*\.(safetensors|bin|npy|png))$')
SKIPPED_FOLDERS = re.compile(r'^(\.git|build|build-.*|__pycache__)$')


def files(root):
    listed = subprocess.run(['git', '-C', root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
                            capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return listed.stdout.decode().rstrip('\0').split('\0')
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not SKIPPED_FOLDERS.match(name)]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return found


def check(root, name):
    """Returns the problems of one file as printable lines; none for binary data."""
    try:
        with open(os.path.join(root, name), encoding='utf-8') as file:
            lines = file.read().split('\n')
    except (UnicodeDecodeError, OSError):     # binary, or listed by git but deleted
        return
    for number, line in enumerate(lines, 1):
        for pattern, what, hint in PATTERNS:
            found = pattern.search(line)
            if found:
                yield f'{name}:{number}: {what}: "{found.group()}" (try: {hint})'


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    names = [name for name in sorted(files(root)) if not DATA.search(name)]
    problems = [line for name in names for line in check(root, name)]
    print('\n'.join(problems) if problems else f'check_words.py: {len(names)} files, nothing left over')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
