"""Checks the error texts of the library: none names a flag of the command line, and every parameter in a text has a row
in src/cli/parameter_names.h, by which the command line shows its flag instead. Exits 1 and prints each wrong text.

usage: check_errors.py [ROOT]

A text is a string literal of src/ outside src/cli and outside tests. A parameter is spelled Type::field, where the name
of the type ends in Options, Params or Request.
"""
import os
import re
import sys

TABLE = 'src/cli/parameter_names.h'
FLAG_LIST = 'src/cli/flag_list.h'
# A comment, a character or a string; only strings are checked. Adjacent literals are one text.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:\\.|[^\'\\])+\'|R"\((.*?)\)"|"((?:\\.|[^"\\\n])*)"', re.S)
FLAG = re.compile(r'(?:^| )--?[a-z]')
PARAMETER = re.compile(r'\b[A-Z]\w*(?:Options|Params|Request)::[a-z]\w*')


def texts(code):
    """(line, text) of each string of a C++ source; neighbouring literals joined."""
    found, end = [], None
    for token in TOKEN.finditer(code):
        text = token.group(1) if token.group(1) is not None else token.group(2)
        if text is None:
            continue
        if end is not None and not code[end:token.start()].strip():
            found[-1] = (found[-1][0], found[-1][1] + text)
        else:
            found.append((code.count('\n', 0, token.start()) + 1, text))
        end = token.end()
    return found


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def library_sources(root):
    for at, subfolders, names in os.walk(os.path.join(root, 'src')):
        subfolders[:] = sorted(name for name in subfolders if os.path.join(at, name) != os.path.join(root, 'src', 'cli'))
        for name in sorted(names):
            if re.search(r'\.(h|cc)$', name) and not re.search(r'_test\.cc$', name):
                yield os.path.relpath(os.path.join(at, name), root)


def check_text(text, rows):
    if FLAG.search(text):
        yield 'names a flag', f'the parameter, "SessionOptions::ctx"; {TABLE} gives its flag'
    for parameter in PARAMETER.findall(text):
        if parameter.startswith('SamplingParams::'):    # the samplers' registry has their flags
            continue
        if not any(row in text and row.split()[0] == parameter for row in rows):
            yield f'{parameter} has no row', f'its flag in {TABLE}, "" where no command has one'


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    table = dict(re.findall(r'\{"([^"]+)", "([^"]*)"\}', read(root, TABLE)))
    declared = {name for names in re.findall(r'\.names\s*=\s*"([^"]+)"', read(root, FLAG_LIST))
                for name in names.split(',')}
    problems = [f'{TABLE}:1: {parameter}: {flag} is no flag (try: one that {FLAG_LIST} declares)'
                for parameter, flag in table.items() if flag and flag not in declared]
    count = 0
    for path in library_sources(root):
        for line, text in texts(read(root, path)):
            count += 1
            problems += [f'{path}:{line}: "{text}" {what} (try: {hint})' for what, hint in check_text(text, table)]
    print('\n'.join(problems) if problems else f'check_errors.py: {count} texts, none names a flag')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
