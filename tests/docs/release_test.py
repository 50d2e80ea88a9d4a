#!/usr/bin/env python3
"""Runs scripts/release in a temporary clone: two dry runs give one archive, and a release is refused when the tree, the
header and the changelog do not agree.

usage: release_test.py
Exits 0, or 1 with a sentence for the first thing that is wrong.
"""
import os
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import md_pages  # noqa: E402  pylint: disable=wrong-import-position

WHO = {f'GIT_{role}_{what}': 'test' for role in ('AUTHOR', 'COMMITTER') for what in ('NAME', 'EMAIL')}
ENVIRONMENT = os.environ | WHO | {'GIT_CONFIG_GLOBAL': '/dev/null'}
CHANGES = '### Added\n\n- A change.\n'


def check(truth, what):
    if not truth:
        sys.exit(f'release_test.py: {what}')


class Clone:
    """A repository of one commit, with what the working tree of this one has now."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run(['tar', '-C', folder, '-x'], input=self.packed(), check=True)
        self.git('init', '-q')
        self.commit('all')

    @staticmethod
    def packed():
        names = '\0'.join(md_pages.tracked(ROOT)).encode()
        return subprocess.run(['tar', '-C', ROOT, '--null', '-T', '-', '-c'], input=names, capture_output=True,
                              check=True).stdout

    def git(self, *arguments):
        return subprocess.run(['git', *arguments], cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True,
                              check=True).stdout

    def commit(self, subject):
        self.git('add', '-A')
        self.git('commit', '-q', '-m', subject)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), 'w', encoding='utf-8') as file:
            file.write(text)

    def release(self, *arguments, umask=0o022):
        """(exit code, all output)"""
        done = subprocess.run(['scripts/release', *arguments], cwd=self.folder, capture_output=True, text=True,
                              env=ENVIRONMENT, umask=umask, check=False)
        return done.returncode, done.stdout + done.stderr

    def sum_of(self, version, **options):
        code, text = self.release(version, '--dry-run', **options)
        check(code == 0, f'a dry run ended with {code}: {text}')
        return re.search(r'^([0-9a-f]{64})  ', text, re.M).group(1)


def refusals(clone, version):
    code, text = clone.release(version, '--dry-run')
    check(code == 1 and 'CHANGELOG.md' in text, f'a changelog without {version} was not refused: {text}')
    code, text = clone.release('9.9.9', '--dry-run')
    check(code == 1 and 'version.h' in text, f'another version than the header\'s was not refused: {text}')
    check(clone.release('1.2')[0] == 2, 'a version of two numbers was not refused')
    clone.write('left_over', '')
    code, text = clone.release(version, '--dry-run')
    check(code == 1 and 'not committed' in text, f'a tree with changes was not refused: {text}')
    os.remove(os.path.join(clone.folder, 'left_over'))


def archive(clone, version):
    first = clone.sum_of(version)
    archived = os.path.join(clone.folder, 'build-release', f'kvasir-{version}.tar.gz')
    with tarfile.open(archived) as tar:
        names = {name.removeprefix(f'kvasir-{version}/') for name in tar.getnames() if not tar.getmember(name).isdir()}
    check(names == set(clone.git('ls-files', '-z').rstrip('\0').split('\0')), 'the archive is not what is committed')
    os.utime(os.path.join(clone.folder, 'README.md'), (0, 0))
    check(clone.sum_of(version, umask=0o077) == first, 'two dry runs give two archives')
    check(clone.git('tag') == '', 'a dry run made a tag')


def tagging(clone, version):
    check(clone.release(version)[0] == 0, 'the release failed')
    check(clone.git('cat-file', '-t', f'v{version}') == 'tag\n', 'the tag is not annotated')
    check(CHANGES.strip() in clone.git('tag', '-l', '--format=%(contents)', f'v{version}'), 'the tag has no notes')
    check(clone.release(version)[0] == 1, 'a second release of one version was not refused')


def main():
    with tempfile.TemporaryDirectory() as folder:
        clone = Clone(folder)
        header = md_pages.read(os.path.join(folder, 'include/kvasir/version.h'))
        version = re.search(r'kVersion = "(.*)"', header).group(1)
        clone.write('CHANGELOG.md', f'# Changelog\n\n## [Unreleased]\n\n{CHANGES}')
        clone.commit('unreleased')
        refusals(clone, version)
        clone.write('CHANGELOG.md', f'# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-01-02\n\n{CHANGES}\n'
                                    '## [0.0.1] - 2026-01-01\n\nOld.\n')
        clone.commit('release')
        archive(clone, version)
        tagging(clone, version)
    print('release_test.py: two dry runs, one archive')


if __name__ == '__main__':
    main()
