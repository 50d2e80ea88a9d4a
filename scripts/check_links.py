"""Checks that every relative link of every Markdown file leads to a tracked file or folder, and every #anchor to a
heading of its page. Addresses on the network are not asked.

usage: check_links.py [ROOT]
"""
import os
import sys
from urllib.parse import unquote

import md_pages


class Tree:
    """The files and anchors that links may lead to."""

    def __init__(self, root):
        self.root = root
        self.files = set(md_pages.tracked(root))
        self.folders = {'.'}
        for name in self.files:
            while name := os.path.dirname(name):
                self.folders.add(name)
        self.known_anchors = {}

    def anchors(self, name):
        if name not in self.known_anchors:
            self.known_anchors[name] = md_pages.anchors(md_pages.read(os.path.join(self.root, name)))
        return self.known_anchors[name]

    def problem(self, page, target):
        """The fault of a link, or None."""
        path, _, anchor = unquote(target).partition('#')
        name = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if name not in self.files and name not in self.folders:
            ignored = os.path.exists(os.path.join(self.root, name))
            return 'that git does not track' if ignored else 'which does not exist'
        if anchor and name.endswith('.md') and anchor not in self.anchors(name):
            return f'and {name} has no heading for #{anchor}'
        return None


def main():
    tree = Tree(sys.argv[1] if len(sys.argv) > 1 else md_pages.root())
    pages = sorted(name for name in tree.files if name.endswith('.md'))
    problems, count = [], 0
    for page in pages:
        for number, target in md_pages.links(md_pages.read(os.path.join(tree.root, page))):
            if not md_pages.is_relative(target):
                continue
            count += 1
            if problem := tree.problem(page, target):
                problems.append(f'{page}:{number}: a link to {target}, {problem}')
    print('\n'.join(problems) if problems else f'check_links.py: {count} links of {len(pages)} pages lead somewhere')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
