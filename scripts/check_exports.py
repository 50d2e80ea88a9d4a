"""Checks that public headers mark with KVASIR_API what the shared library must export: classes with functions of their
own, and free functions that are not inline. Exits 1 and names each that lacks the mark.

usage: check_exports.py [ROOT]
"""
import os
import re
import sys

TYPE = re.compile(r'^(?:class|struct) (?!KVASIR_API )(\w+)[^;]*\{$')
MEMBER = re.compile(r'^  (?:virtual\b.*|(?!friend|return|using)[^=(/]*\w\([^{}]*\)(?: const)?(?: noexcept)?;.*)$')
FUNCTION = re.compile(r'^(?!KVASIR_API|inline|constexpr|using|template|class|struct|enum|return|friend)[A-Za-z_:][\w:<>,&* ]* [*&]?(\w+)\(')


def unmarked(lines):
    """(line number, name) of each declaration at the level of the namespace that lacks the mark."""
    inside = None
    for number, line in enumerate(lines, 1):
        if found := TYPE.match(line):
            inside = (number, found[1])
        elif line.startswith('};'):
            inside = None
        elif inside and MEMBER.match(line):
            yield inside
            inside = None
        elif found := FUNCTION.match(line):
            yield number, found[1]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder, problems = os.path.join(root, 'include', 'kvasir'), 0
    headers = sorted(os.listdir(folder))
    for name in headers:
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            for number, what in unmarked(file.read().split('\n')):
                print(f'include/kvasir/{name}:{number}: {what} is not in the shared library (try: KVASIR_API before it)')
                problems += 1
    if not problems:
        print(f'check_exports.py: {len(headers)} headers, all that they declare is exported')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
