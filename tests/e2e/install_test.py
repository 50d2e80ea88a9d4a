#!/usr/bin/env python3
"""The build is installed into a temporary folder, and programs are made against that copy alone: examples/ by
find_package and by pkg-config, the code of docs/api.md and of README.md by pkg-config, one program statically. They run
on models/tales, except README.md's. The shared library exports names of Kvasir only.

usage: install_test.py --build build-dev
Exits 0, or 1 with a sentence for the first thing that is wrong.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = ['hello', 'stream', 'batch', 'fork_and_save', 'embed']
WARNINGS = ['-Wall', '-Wextra', '-Wconversion', '-Werror']


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors='replace', **options)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}\nended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}')
    return done.stdout


def check(truth, what):
    if not truth:
        sys.exit(what)


def code_of(page):
    with open(page, encoding='utf-8') as file:
        return '\n'.join(re.findall(r'^```cpp\n(.*?)^```$', file.read(), re.S | re.M))


class Copy:
    """The installed copy and what is built against it."""

    def __init__(self, build, folder):
        self.folder, self.prefix = folder, f'{folder}/prefix'
        run('cmake', '--install', build, '--prefix', self.prefix)
        found = [at for at, _, names in os.walk(self.prefix) if 'kvasir.pc' in names]
        check(found, 'kvasir.pc is not installed')
        self.environment = os.environ | {'PKG_CONFIG_PATH': found[0]}
        self.models = self.pkg_config('--variable=modelsdir')[0]
        self.libraries = os.path.dirname(found[0])

    def pkg_config(self, *arguments):
        return run('pkg-config', *arguments, 'kvasir', env=self.environment).split()

    def by_find_package(self):
        build = f'{self.folder}/examples'
        run('cmake', '-S', f'{ROOT}/examples', '-B', build, f'-DCMAKE_PREFIX_PATH={self.prefix}',
            f'-DCMAKE_CXX_FLAGS={" ".join(WARNINGS)}')
        run('cmake', '--build', build, '-j2')
        return build

    def by_pkg_config(self, name, source):
        """-isystem would hide warnings of the headers: pkg-config gives -I."""
        flags, out = self.pkg_config('--cflags', '--libs'), f'{self.folder}/{name}'
        run('g++', '-std=c++20', *WARNINGS, source, '-o', out, *flags, f'-Wl,-rpath,{self.libraries}')
        return out

    def static(self, name, source):
        flags = ['-l:libkvasir.a' if flag == '-lkvasir' else flag for flag in self.pkg_config('--cflags', '--libs', '--static')]
        run('g++', '-std=c++20', source, '-o', f'{self.folder}/{name}', *flags)
        return f'{self.folder}/{name}'


def check_exports(copy):
    library = f'{copy.libraries}/libkvasir.so'
    dynamic = run('readelf', '-d', library)
    check('Library soname: [libkvasir.so.0]' in dynamic, f'no SONAME libkvasir.so.0:\n{dynamic}')
    names = [line.split(' ', 2)[2] for line in run('nm', '-DC', '--defined-only', library).splitlines()]
    check(len(names) > 50, f'only {len(names)} symbols are exported')
    wrong = [name for name in names if not re.match(r'((typeinfo|typeinfo name|vtable) for )?kvasir::', name)]
    check(not wrong, f'{len(wrong)} exported names are not of Kvasir: {wrong[:10]}')
    print(f'{len(names)} exported names, all of Kvasir')


def check_output(copy, examples):
    """Each example from both builds, whose outputs must be equal."""
    outputs = {}
    for name in EXAMPLES:
        of_both = {run(program, f'{copy.models}/tales', cwd=copy.folder)
                   for program in (f'{examples}/{name}', f'{copy.folder}/{name}')}
        check(len(of_both) == 1, f'{name} differs between its builds: {of_both}')
        outputs[name] = of_both.pop()
    command = run(f'{copy.prefix}/bin/kvasir', 'run', 'tales', '-p', 'Once upon a time', '-n', '20', '--greedy')
    check(outputs['hello'].strip().endswith(command.strip()[-40:]), f'hello: {outputs["hello"]}\nkvasir run: {command}')
    check(run(f'{copy.folder}/hello_static', f'{copy.models}/tales') == outputs['hello'], 'the static hello differs')
    check(len(re.findall(r'^ *\d+ +-?\d+\.\d{4}$', outputs['stream'], re.M)) == 20, f'stream: {outputs["stream"]}')
    check(len(outputs['batch'].splitlines()) >= 3, f'batch: {outputs["batch"]}')
    first = re.search(r'^first: (.*?)\nsecond: (.*?)\nloaded: (.*)\Z', outputs['fork_and_save'], re.S | re.M)
    check(first and first[1] == first[3].rstrip('\n') and first[1] != first[2], f'fork_and_save: {outputs["fork_and_save"]}')
    check(outputs['embed'].startswith(' 1.0000 '), f'embed: {outputs["embed"]}')
    page = run(f'{copy.folder}/api', f'{copy.models}/tales', cwd=copy.folder)
    check(len(re.findall(r'likeliest', page)) == 20, f'docs/api.md: {page}')
    check(re.search(r'^number: \d{4}$', page, re.M), f'docs/api.md: {page}')
    check('tokens saved and loaded' in page, f'docs/api.md: {page}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(parser.parse_args().build, folder)
        check_exports(copy)
        with open(f'{folder}/api.cc', 'w', encoding='utf-8') as file:
            file.write(code_of(f'{ROOT}/docs/api.md'))
        with open(f'{folder}/readme.cc', 'w', encoding='utf-8') as file:
            file.write(code_of(f'{ROOT}/README.md') + '\nint main() { return continued("Once") ? 0 : 1; }\n')
        with ThreadPoolExecutor(2) as pool:
            made = [pool.submit(copy.by_pkg_config, name, f'{ROOT}/examples/{name}.cc') for name in EXAMPLES]
            made += [pool.submit(copy.by_pkg_config, 'api', f'{folder}/api.cc'),
                     pool.submit(copy.by_pkg_config, 'readme', f'{folder}/readme.cc'),
                     pool.submit(copy.static, 'hello_static', f'{ROOT}/examples/hello.cc')]
            for one in made:
                one.result()
        check_output(copy, copy.by_find_package())
    print('installed, built and run: ' + ', '.join(EXAMPLES) + ', docs/api.md; built: README.md')


if __name__ == '__main__':
    main()
