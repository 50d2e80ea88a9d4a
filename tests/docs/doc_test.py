#!/usr/bin/env python3
"""Runs the commands of README.md, CONTRIBUTING.md, docs/ and models/ as they are written, and checks that each exits
with 0.

Folder: each page gets a temporary folder that looks like a built clone (build/kvasir is the given program) and holds
the files of tests/docs/files. /tmp/ and a server's port are replaced, so that nothing outside of the folder changes.

Commands: lines of fences tagged sh, bash, shell or console (there, lines after "$ "), and of untagged fences that begin
with a known command. Rules:
  - `<!-- needs: WHAT -->` on the line before a fence keeps it from being run. WHAT is one or more of: a file, a model
    file, network, root, a build, minutes.
  - A line that names something of the reader's own (own_thing in scripts/md_pages.py: path/to/model, OWNER/NAME; also
    ./demo and ./test) is not run. A fence in which no line is run must be marked.
  - A command that is not in RUN (cmake, apt-get) must be in a marked fence.
  - "exit code 1" in a line's comment is the exit code expected of that line.
  - A receipt that a page shows is printed by one of its commands.
  - `kvasir serve` is started, awaited at /ready and stopped before the next one, or at the end of the page. curl fails
    when the status is 400 or more.

usage: doc_test.py --program build/kvasir [--list] [PAGE...]
--list runs nothing and prints what would be done with each command. Exits with 1 when a command failed.
"""
import argparse
import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import md_pages  # noqa: E402  pylint: disable=wrong-import-position

PAGES = ['README.md', 'CONTRIBUTING.md', 'docs', 'models']
SHELLS = {'sh', 'bash', 'shell', 'console'}
PROGRAM = {'build/kvasir', 'build/llm', './build/kvasir', 'kvasir'}
RUN = PROGRAM | {'curl', 'cat', 'cmp', 'cut', 'dd', 'diff', 'echo', 'grep', 'head', 'ls', 'mkdir', 'printf', 'python3', 'sed',
                 'sleep', 'sort', 'tail', 'test', 'time', 'tr', 'wc'}
STATE = {'cd', 'export'}     # run again before every later command of the fence
KEYWORDS, BEFORE_COMMAND = {'for', 'done', 'fi'}, {'do', 'if', 'then', 'else', 'while', '!'}
NOT_RUN = {'apt-get', 'cmake', 'cp', 'ctest', 'docker', 'g++', 'git', 'make', 'pip', 'podman', 'sudo', 'systemctl'}
NOT_RUN_FROM = ('./', 'scripts/', 'bench/', 'tests/')
NEEDS = {'a file', 'a model file', 'network', 'root', 'a build', 'minutes'}
MARK = re.compile(r'<!-- needs: (.*?) -->\s*$')
SERVE = re.compile(r'(\w+=\S*\s+)*(build/|\./build/)?(kvasir|llm)\s+serve\b')
RECEIPT = re.compile(r'\breceipt\W+([0-9a-f]{32})\b')
SECONDS = 60


@dataclass
class Fence:
    page: str
    line: int        # of its first line of code
    language: str
    needs: str       # of its mark, or ''
    text: list


@dataclass
class Command:
    page: str
    line: int
    text: str
    needs: str = ''  # why it is not run
    wrong: str = ''  # why it should be marked
    prelude: str = ''

    def place(self):
        return f'{self.page}:{self.line}: {" ".join(self.text.split())[:110]}'


# ---- what the pages hold --------------------------------------------------------------------------------------------

def fences(page):
    lines = md_pages.read(os.path.join(ROOT, page)).split('\n')
    opened = None
    for number, line in enumerate(lines, 1):
        mark = md_pages.FENCE.match(line)
        if opened is None and mark:
            before = MARK.search(lines[number - 2]) if number > 1 else None
            language = line.strip().lstrip('`~').strip()
            opened = Fence(page, number + 1, language, before.group(1) if before else '', [])
        elif opened is not None and mark and line.strip() == mark.group(1):
            yield opened
            opened = None
        elif opened is not None:
            opened.text.append(line)


def is_whole(text):
    """Whether bash would run it without waiting for another line."""
    if text.endswith('\\'):
        return False
    done = subprocess.run(['bash', '-n', '-c', text + '\n'], capture_output=True, check=False)
    return done.returncode == 0 and not done.stderr


def statements(fence):
    """(line number, text) of each whole command: lines that belong together are one."""
    prompts = fence.language == 'console' or any(line.startswith('$ ') for line in fence.text)
    held, begin = [], 0
    for number, line in enumerate(fence.text, fence.line):
        if not held:
            if prompts and not line.startswith('$ '):
                continue
            line = line[2:] if prompts else line
            if not line.strip() or line.lstrip().startswith('#'):
                continue
            begin = number
        held.append(line)
        if is_whole('\n'.join(held)):
            yield begin, '\n'.join(held)
            held = []
    if held:
        yield begin, '\n'.join(held)


def words_of(text):
    """The first word of each simple command, `a | b && c`."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=';&|<>()')
    lexer.whitespace_split = True
    first, words = True, []
    try:
        for word in lexer:
            if word and set(word) <= set(';&|()') or word in BEFORE_COMMAND:
                first = True
            elif first and not re.match(r'\w+=', word):
                words += [] if word in KEYWORDS else [word]
                first = False
    except ValueError:      # an apostrophe of text that is no command
        return [text.split()[0]] if text.split() else []
    return words


def is_shell(fence):
    if fence.needs or fence.language:
        return bool(fence.needs) or fence.language in SHELLS
    first = next((words_of(text) for _, text in statements(fence)), [])
    return bool(first) and (first[0] in RUN | STATE | NOT_RUN or first[0].startswith(NOT_RUN_FROM))


def judge(command):
    """Sets why a command of an unmarked fence is not run."""
    command.needs = md_pages.own_thing(command.text)
    unknown = [word for word in words_of(command.text) if word not in RUN | STATE]
    if unknown and not command.needs:
        command.wrong = f'{unknown[0]} is not run here'


def commands(fence):
    found = [Command(fence.page, line, text, fence.needs) for line, text in statements(fence)]
    if fence.needs:
        unknown = set(re.split(r', | and ', fence.needs)) - NEEDS
        if unknown:
            found[0].wrong = f'unknown need: {unknown.pop()}'
        return found
    prelude = ''
    for command in found:
        judge(command)
        command.prelude = prelude
        if words_of(command.text)[:1] and words_of(command.text)[0] in STATE:
            prelude += command.text + '\n'
    if found and all(command.needs for command in found):
        found[0].wrong = 'nothing of this fence is run'
    return found


def pages(names):
    listed = md_pages.tracked(ROOT, *(names or PAGES))
    return [name for name in listed if name.endswith('.md')]


# ---- running them ---------------------------------------------------------------------------------------------------

def make_clone(folder, program):
    """A folder that looks like a clone whose program is built."""
    for name in {name.split('/')[0] for name in md_pages.tracked(ROOT)}:
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    for name in ('build', 'tmp', 'home'):
        os.makedirs(os.path.join(folder, name))
    for name in ('kvasir', 'llm'):
        os.symlink(os.path.abspath(program), os.path.join(folder, 'build', name))
    shutil.copytree(os.path.join(ROOT, 'tests', 'docs', 'files'), folder, dirs_exist_ok=True)
    with open(os.path.join(folder, 'home', '.curlrc'), 'w', encoding='utf-8') as file:
        file.write('fail-with-body\n')


def environment(folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('HF_', 'XDG_', 'KVASIR_'))}
    return kept | {'HOME': f'{folder}/home', 'TMPDIR': f'{folder}/tmp', 'PATH': f'{folder}/build:{os.environ["PATH"]}',
                   'no_proxy': '*', 'PYTHONDONTWRITEBYTECODE': '1'}


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def end_group(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


class Server:
    """A `kvasir serve` of a page, at a port of its own."""

    def __init__(self, command, start):
        self.place, text = command.place(), command.text
        asked = re.search(r'--port[ =](\d+)', text)
        self.shown, self.port = asked.group(1) if asked else '8080', free_port()
        text = re.sub(r'\s*&\s*(#.*)?$', '', text)
        text = self.moved(text) if asked else re.sub(r'\bserve\b', f'serve --port {self.port}', text, count=1)
        self.log = tempfile.TemporaryFile()
        self.process = start(f'{command.prelude}exec env {text}', stdout=self.log, stderr=self.log)

    def moved(self, text):
        return re.sub(rf'\b{self.shown}\b', str(self.port), text)

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors='replace')[-1500:]

    def is_ready(self):
        try:
            with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/ready', timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def wait(self):
        """The fault before it was ready, or ''."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if self.is_ready():
                return ''
            if self.process.poll() is not None:
                return f'ended with {self.process.returncode}: {self.said()}'
            time.sleep(0.05)
        return f'not ready after {SECONDS} s: {self.said()}'

    def stop(self):
        """The fault at its end, or ''."""
        if self.process.poll() is not None:
            return f'ended with {self.process.returncode}: {self.said()}'
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            end_group(self.process, signal.SIGKILL)
            return f'still there {SECONDS} s after SIGTERM'
        return '' if code == 0 else f'ended with {code} after SIGTERM: {self.said()}'


class Page:
    """Runs the commands of one page in one folder, since later ones read what earlier ones wrote."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix='kvasir-docs-')
        self.server, self.failures, self.printed = None, [], set()
        make_clone(self.folder, program)

    def close(self):
        self.stop_server()
        shutil.rmtree(self.folder)

    def stop_server(self):
        if self.server and (problem := self.server.stop()):
            self.failures.append(f'{self.server.place}\n    {problem}')
        self.server = None

    def start(self, text, **pipes):
        text = re.sub(r'''(?<![\w.])/tmp\b''', f'{self.folder}/tmp', text)
        return subprocess.Popen(['bash', '-c', 'set -o pipefail\n' + text], cwd=self.folder, stdin=subprocess.DEVNULL,
                                env=environment(self.folder), start_new_session=True, **pipes)

    def run(self, command):
        if SERVE.match(command.text) and '--check' not in command.text:
            self.stop_server()
            self.server = Server(command, self.start)
            problem = self.server.wait()
            if problem:
                self.server.process.kill()
                self.server = None
        else:
            problem = self.run_once(command)
        if problem:
            self.failures.append(f'{command.place()}\n    {problem}')

    def run_once(self, command):
        text = command.prelude + command.text
        if self.server:
            text = self.server.moved(text)
        process = self.start(text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            end_group(process, signal.SIGKILL)
            process.communicate()
            return f'still running after {SECONDS} s'
        self.printed.update(RECEIPT.findall(said.decode(errors='replace')))
        wanted = re.search(r'#.*\bexit code (\d+)', command.text)
        wanted = int(wanted.group(1)) if wanted else 0
        if process.returncode != wanted:
            return f'ended with {process.returncode}, not {wanted}: {said.decode(errors="replace")[-1500:]}'
        return ''


def run_page(program, found, verbose):
    """Failures of one page's commands."""
    page, name = Page(program), found[0].page
    try:
        for command in found:
            begin = time.monotonic()
            page.run(command)
            if verbose:
                print(f'{time.monotonic() - begin:5.1f} s  {command.place()}', flush=True)
    finally:
        page.close()
    shown = RECEIPT.findall(md_pages.read(os.path.join(ROOT, name)))
    return page.failures + [f'{name}: no command prints the receipt {one}' for one in shown if one not in page.printed]


def arguments():
    parser = argparse.ArgumentParser(description='Runs the commands of the pages.')
    parser.add_argument('--program', required=True)
    parser.add_argument('--list', action='store_true')
    parser.add_argument('-v', '--verbose', action='store_true', help='a line with the time of each command')
    parser.add_argument('pages', nargs='*', metavar='PAGE')
    return parser.parse_args()


def show(found):
    for command in found:
        verdict = f'WRONG: {command.wrong}' if command.wrong else f'needs {command.needs}' if command.needs else 'run'
        print(f'{verdict:24} {command.place()}')


def summary(counts, failed, seconds):
    skipped = ', '.join(f'{count} need {what}' for what, count in sorted(counts.items()) if what != 'run')
    return f'doc_test.py: {counts["run"]} commands run, {failed} failed, {seconds:.0f} s; not run: {skipped or "none"}'


def main():
    a = arguments()
    begin = time.monotonic()
    failures, counts = [], Counter()
    for page in pages(a.pages):
        found = [command for fence in fences(page) if is_shell(fence) for command in commands(fence)]
        if a.list:
            show(found)
            continue
        failures += [f'{c.place()}\n    {c.wrong} (try: <!-- needs: WHAT --> before the fence)'
                     for c in found if c.wrong]
        counts.update(command.needs.split(',')[0] for command in found if command.needs)
        to_run = [command for command in found if not command.needs and not command.wrong]
        counts['run'] += len(to_run)
        if to_run:
            failures += run_page(a.program, to_run, a.verbose)
    if not a.list:
        print(*failures, summary(counts, len(failures), time.monotonic() - begin), sep='\n')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
