"""Lengths of C++ functions and files: prints median, p90, p99, the longest ten; fails over the house's limits.

usage: check_function_lengths.py [ROOT]

A function counts from the first line of its signature to its closing brace; a lambda counts in the function that
holds it. Tests are left out of the function numbers, not of the file limit. A matcher of braces, not a compiler:
macros that open a brace and leave it open would fool it.
"""
import os
import re
import sys

MAX_FUNCTION, MAX_P90, MAX_FILE, WARN_FILE = 100, 35, 1000, 600
# Everything whose braces do not count, then what does; the rest of the text is skipped between matches.
TOKEN = re.compile(r'''
    (?P<skip> //(?:\\\n|[^\n])* | /\*.*?\*/ | ^[ \t]*\#(?:\\\n|[^\n])* )
  | (?P<text> R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)" | "(?:\\.|[^"\\\n])*" | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*' )
  | (?P<mark> [{};()\[\]] )
  | (?P<word> [A-Za-z_]\w* | [^\s{};()\[\]"\'/#]+ | . )
''', re.VERBOSE | re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r'(^|\s)(namespace|class|struct|union|extern)\b')
# "Name(...) : member_" or "..., member_": the brace that follows initialises the member.
INITIALISER = re.compile(r'\)\s*(?:noexcept\s*)?:\s(?:.*,\s*)?[\w:<> ]+$')


def kind_of(head):
    """The kind of the brace after `head`: 'scope', 'function', 'initialiser' (of a member) or 'other'."""
    flat = re.sub(r'\([^()]*\)', '()', re.sub(r'\([^()]*\)', '()', head))     # two levels are enough to judge by
    bare = re.sub(r'template\s*<.*?>\s*(?=class|struct|union)', '', flat)
    bare = re.sub(r'alignas\s*\(\)|\[\[.*?\]\]', '', bare)
    if INITIALISER.search(flat):
        return 'initialiser'
    if SCOPE.search(bare) and not re.search(r'\)\s*(const|noexcept|override|final|->.*)?\s*$', bare):
        return 'scope'
    is_lambda = re.search(r'=\s*\[[^\]]*\]\s*(\(\))?\s*(mutable|noexcept|->.*)?\s*$', flat)
    if is_lambda or ('(' in flat and not re.search(r'(?<!operator)(?<![=!<>])=(?!=)\s*[^()]*(\(\)[^()]*)*$', flat)):
        return 'function'
    return 'scope' if re.search(r'(^|\s)(class|struct|union)\s', bare) else 'other'


def functions(text):
    """Yields (lines, first line, signature) of every function that is not inside another one."""
    line, at, head, begin, round_depth, stack = 1, 0, '', 0, 0, []
    for token in TOKEN.finditer(text):
        line += text.count('\n', at, token.start())
        at = token.start()
        mark = token.group('mark')
        if token.group('skip'):
            continue
        inside = any(kind in ('function', 'other') for kind, *_ in stack)
        if mark in ('(', '['):
            round_depth += 1
        elif mark in (')', ']'):
            round_depth -= 1
        if mark == '{':
            kind = 'nested' if inside or round_depth else kind_of(head)
            stack.append((kind, begin, head, round_depth))
            round_depth = 0
            head = head if kind == 'initialiser' or stack[-1][3] else ''
        elif mark == '}' and stack:
            kind, first, signature, round_depth = stack.pop()
            if kind == 'function':
                yield line - first + 1, first, ' '.join(signature.split())
            head = signature + '{}' if kind == 'initialiser' or round_depth else ''
        elif mark == ';' and not round_depth:
            head = ''
        elif re.fullmatch(r'(public|private|protected)', head.strip()) and token.group() == ':':
            head = ''
        elif not token.group().isspace() or head:
            begin = begin if head else line
            head += '""' if token.group('text') else token.group()


def is_test(path):
    return path.startswith('tests/') or re.search(r'_test\.(cc|h)$', path)


def sources(root):
    for folder in ('include', 'src', 'bench', 'python', 'tests'):
        for at, subfolders, names in os.walk(os.path.join(root, folder)):
            subfolders.sort()
            for name in sorted(names):
                if re.search(r'\.(h|cc|inc)$', name):
                    yield os.path.relpath(os.path.join(at, name), root)


def report(lengths):
    """Prints the numbers; returns what is over a limit."""
    ordered = sorted(length for length, *_ in lengths)

    def quantile(part):
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))]

    p90 = quantile(0.9)
    print(f'functions {len(ordered)}: median {quantile(0.5)}, p90 {p90}, p99 {quantile(0.99)}, max {ordered[-1]}')
    for length, path, first, signature in sorted(lengths, reverse=True)[:10]:
        print(f'  {length:4} {path}:{first} {signature[:80]}')
    problems = [f'{path}:{first}: function of {length} lines, the limit is {MAX_FUNCTION} (try: name its parts)'
                for length, path, first, _ in lengths if length > MAX_FUNCTION]
    if p90 > MAX_P90:
        problems.append(f'p90 of function lengths is {p90}, the limit is {MAX_P90} (try: split the ones above)')
    return problems


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    lengths, problems, files = [], [], 0
    for path in sources(root):
        with open(os.path.join(root, path), encoding='utf-8') as file:
            text = file.read()
        files += 1
        lines = text.count('\n')
        if lines > MAX_FILE:
            problems.append(f'{path}:1: file of {lines} lines, the limit is {MAX_FILE} (try: one thing a file)')
        elif lines > WARN_FILE:
            print(f'warning: {path}: {lines} lines, aim for at most {WARN_FILE}')
        if not is_test(path):
            lengths += [(length, path, first, signature) for length, first, signature in functions(text)]
    print(f'files {files}')
    if lengths:
        problems += report(lengths)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
