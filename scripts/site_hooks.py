"""Hooks of mkdocs (mkdocs.yml): the site holds docs/ and the files of the repository that its pages link to.

A linked file outside docs/ becomes a page at tree/PATH: Markdown as it is, other text as code, a folder as its
README.md or a list of its files. README.md is the home page when docs/index.md is absent. Links are rewritten to these
pages.
"""
import json
import os
import posixpath
import re
import sys

from mkdocs.structure.files import File

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import md_pages  # noqa: E402  pylint: disable=wrong-import-position

DOCS = 'docs/'
ALWAYS = ('README.md', 'CHANGELOG.md', 'CONTRIBUTING.md')
LANGUAGES = {'.h': 'cpp', '.cc': 'cpp', '.py': 'python', '.sh': 'bash', '.json': 'json', '.cmake': 'cmake'}


class Tree:
    """Which files of the repository are pages, and where in the site."""

    def __init__(self):
        self.files = md_pages.tracked(ROOT)
        self.pages = {}      # path in the repository (folders too): path in the site
        self.aliases = {}    # folder: its README.md
        for name in self.files:
            if name.startswith(DOCS) or name in ALWAYS:
                self.add(name)

    def add(self, name):
        """Makes a page of a file or folder, and of what it links to."""
        readme = f'{name}/README.md'
        if readme in self.files:
            self.aliases[name] = readme
            name = readme
        if name in self.pages:
            return
        self.pages[name] = self.place(name)
        for target in self.targets(name):
            if os.path.exists(os.path.join(ROOT, target)):
                self.add(target)

    def place(self, name):
        if name.startswith(DOCS):
            return name[len(DOCS):]
        if name == 'README.md' and DOCS + 'index.md' not in self.files:
            return 'index.md'
        if os.path.isdir(os.path.join(ROOT, name)):
            return f'tree/{name}/index.md'
        return f'tree/{name}' if name.endswith('.md') else f'tree/{name}.md'

    def inside(self, folder):
        return [name for name in self.files if posixpath.dirname(name) == folder]

    def targets(self, name):
        """Paths in the repository that a page links to."""
        path = os.path.join(ROOT, name)
        if os.path.isdir(path):
            return self.inside(name)
        if not name.endswith('.md'):
            return []
        found = (target for _, target in md_pages.links(md_pages.read(path)) if md_pages.is_relative(target))
        return [resolved(name, target)[0] for target in found]

    def source(self, name):
        """The Markdown of a page that is no Markdown file."""
        if os.path.isdir(os.path.join(ROOT, name)):
            listed = [f'- [{posixpath.basename(one)}](/{one})' for one in self.inside(name)]
            return '\n'.join([f'# {name}/', '', *listed, ''])
        text = md_pages.read(os.path.join(ROOT, name)).rstrip('\n')
        return f'# {name}\n\n````{LANGUAGES.get(os.path.splitext(name)[1], "text")}\n{text}\n````\n'


def resolved(page, target):
    """(path in the repository, '#anchor' or '') of a relative link."""
    path, mark, anchor = target.partition('#')
    if path.startswith('/'):
        return path[1:], mark + anchor
    joined = posixpath.join(posixpath.dirname(page), path) if path else page
    return posixpath.normpath(joined), mark + anchor


TREE = Tree()
CODE_URLS = set()


def present(nav):
    """The entries of the navigation whose pages exist."""
    kept = []
    for entry in nav:
        title, value = next(iter(entry.items()))
        if isinstance(value, list):
            value = present(value)
        elif value not in TREE.pages.values():
            continue
        if value:
            kept.append({title: value})
    return kept


def on_config(config):
    config['nav'] = present(config['nav'])
    return config


def on_files(files, config):
    known = {file.src_path for file in files}
    for name, place in TREE.pages.items():
        if place not in known:
            file = File(place, ROOT, config['site_dir'], config['use_directory_urls'])
            file.abs_src_path = os.path.join(ROOT, name)
            files.append(file)
            if not name.endswith('.md'):
                CODE_URLS.add(file.url)
    style = File('site.css', os.path.join(ROOT, 'scripts'), config['site_dir'], config['use_directory_urls'])
    files.append(style)
    return files


def name_of(page):
    return next(name for name, place in TREE.pages.items() if place == page.file.src_path)


def on_page_read_source(page, config):
    name = name_of(page)
    return None if name.endswith('.md') else TREE.source(name)


def on_page_markdown(markdown, page, config, files):
    """Links between pages, from where they are in the site."""
    name, here = name_of(page), posixpath.dirname(page.file.src_path)

    def moved(target):
        if not target.startswith('/') and not md_pages.is_relative(target):
            return target
        path, anchor = resolved(name, target)
        path = TREE.aliases.get(path, path)
        if path == name or path not in TREE.pages:
            return target
        return posixpath.relpath(TREE.pages[path], here or '.') + anchor
    return md_pages.replace_links(markdown, moved)


def on_page_content(html, page, config, files):
    """Marks flags, whose names site.css keeps in one piece."""
    return re.sub(r'<code>(--?[A-Za-z][\w-]*)</code>', r'<code class="flag">\1</code>', html)


def on_post_build(config):
    """Source files are pages, but the search looks into the pages of prose only."""
    path = os.path.join(config['site_dir'], 'search', 'search_index.json')
    with open(path, encoding='utf-8') as file:
        index = json.load(file)
    index['docs'] = [entry for entry in index['docs'] if entry['location'].split('#')[0] not in CODE_URLS]
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(index, file)
