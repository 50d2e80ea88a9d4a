"""Markdown as our pages use it: lines outside of code fences, links, the anchors of headings. No rendering.

Used by check_links.py, site_hooks.py and check_sentences.py.
"""
import os
import re
import subprocess

# Group 1 is the target. A label may go on in the next line of its paragraph.
LINK = re.compile(r'!?\[(?:[^\[\]\n]|\n(?!\s*\n)|!?\[[^\[\]]*\](?:\([^()]*\))?)*\]'
                  r'\(([^()\s]+(?:\([^()]*\))?)(?:\s+"[^"]*")?\)')
DEFINITION = re.compile(r'^\[[^\]]+\]:\s+(\S+)', re.M)
IMAGE = re.compile(r'!\[[^\]]*\]\(([^()\s]+)\)')
HTML_LINK = re.compile(r'\b(?:href|src|srcset)="([^"\s]+)')
HTML_ANCHOR = re.compile(r'\b(?:id|name)="([^"]+)"')
FENCE = re.compile(r'\s*(```+|~~~+)')
CODE = re.compile(r'(?<!`)(`+)(?!`)(?:[^\n]|\n(?!\s*\n))*?(?<!`)\1(?!`)')
HEADING = re.compile(r'(#{1,6})\s+(.*?)\s*#*\s*$')


def root():
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def walked(folder):
    """Files of a source archive, which has no .git: nothing built."""
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not re.match(r'(\.git|build|build-.*|__pycache__)$', name)]
        yield from (os.path.relpath(os.path.join(at, name), folder) for name in names)


def tracked(folder, *starts):
    """Files that git tracks, or would: nothing built and nothing ignored. With `starts`, these files and those in these
    folders."""
    listed = subprocess.run(['git', '-C', folder, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
                            capture_output=True, check=False)
    names = listed.stdout.decode().split('\0') if listed.returncode == 0 and listed.stdout else walked(folder)
    return sorted({name for name in names if name and os.path.exists(os.path.join(folder, name))
                   and (not starts or any(name == start or name.startswith(start + '/') for start in starts))})


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def outside_fences(text):
    """(line number, line) for each line that is not code in a fence."""
    fence = None
    for number, line in enumerate(text.split('\n'), 1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark.group(1)
        elif fence is not None:
            if mark and mark.group(1).startswith(fence) and line.strip() == mark.group(1):
                fence = None
        else:
            yield number, line


def without_code(text):
    """The text with blanks in place of fences and `code`: what stands elsewhere keeps its place."""
    prose = dict(outside_fences(text))
    lines = [prose.get(number, ' ' * len(line)) for number, line in enumerate(text.split('\n'), 1)]
    return CODE.sub(lambda code: re.sub(r'[^\n]', ' ', code.group()), '\n'.join(lines))


def link_spans(text):
    """(begin, end) of every link's and image's target, ascending."""
    bare = without_code(text)
    patterns = (LINK, IMAGE, DEFINITION, HTML_LINK)
    return sorted({found.span(1) for pattern in patterns for found in pattern.finditer(bare)})


def links(text):
    """(line number, target) of every link and image."""
    return [(text.count('\n', 0, begin) + 1, text[begin:end]) for begin, end in link_spans(text)]


def replace_links(text, change):
    """The text with change(target) in place of every link's target."""
    for begin, end in reversed(link_spans(text)):
        text = text[:begin] + change(text[begin:end]) + text[end:]
    return text


def is_relative(target):
    return not re.match(r'[a-z][a-z0-9+.-]*:|//', target)


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', heading)
    text = re.sub(r'[^\w\- ]', '', text.replace('`', '').lower())
    return text.strip().replace(' ', '-')


def anchors(text):
    found, seen = set(), {}
    for _, line in outside_fences(text):
        heading = HEADING.match(line)
        if heading:
            name = slug(heading.group(2))
            count = seen[name] = seen.get(name, -1) + 1
            found.add(f'{name}-{count}' if count else name)
        found.update(HTML_ANCHOR.findall(line))
    return found


# Names in commands that stand for something of the reader's own: files, and the OWNER/NAME of a model of a hub. The two
# programs that build.
OWN_FILE = re.compile(r'path/to/|\b(?:model|smollm2|a|b|FILE)\.gguf\b|\b(?:TRACE|TOKEN|PREFIX|PATH)\b'
                      r'|\bwiki\.test\.raw\b')
BUILDS = re.compile(r'(?<!\S)\./(?:demo|test)\b')
HUB_NAME = re.compile(r'(?<![\w/.])[\w-]+/[A-Z][\w.-]*')


def own_thing(command):
    """The thing that a command needs beside a built clone: 'a file', 'network', 'a build', or ''."""
    if BUILDS.search(command):
        return 'a build'
    if HUB_NAME.search(command):
        return 'network'
    return 'a file' if OWN_FILE.search(command) else ''
