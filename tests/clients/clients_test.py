"""Client libraries against `kvasir serve`: npm packages (clients.mjs; dialects.mjs for tool calls and the other APIs),
then aiohttp (aiohttp_client.py).

usage: clients_test.py --program build/kvasir [--models models] [--work build/clients]

The packages of package-lock.json are installed into --work once, and again when the lock file changes; nothing else
leaves 127.0.0.1. Exits 0 or 1; 77 (skipped) without node 20, npm or a registry. Without python3-aiohttp its part is
skipped, and a line says so.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys

from script_model import write_model
from serving import ROOT, Server

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
KEYS = 'one key-one\ntwo key-two 1 1\n'
# npm's error codes for an unreachable registry; any other error is a fault of the lock file.
NO_REGISTRY = r'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED'


def skip(why):
    print('skipped:', why)
    sys.exit(SKIPPED)


def need_node():
    node, npm = shutil.which('node'), shutil.which('npm')
    if not node or not npm:
        skip('node and npm are not both installed')
    version = subprocess.run([node, '--version'], capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    if int(re.match(r'v(\d+)', version).group(1)) < 20:
        skip(f'node is {version}, and the clients want 20')
    return node, npm


def install(npm, work):
    """Installs the packages of the lock file into work/node_modules."""
    os.makedirs(work, exist_ok=True)
    for name in ('package.json', 'package-lock.json', 'clients.mjs', 'dialects.mjs'):
        shutil.copy(os.path.join(HERE, name), work)
    with open(os.path.join(HERE, 'package-lock.json'), 'rb') as file:
        wanted = hashlib.sha256(file.read()).hexdigest()
    stamp = os.path.join(work, 'installed')
    if os.path.exists(stamp):
        with open(stamp, encoding='utf-8') as file:
            if file.read() == wanted:
                return
    command = [npm, 'ci', '--ignore-scripts', '--no-audit', '--no-fund']
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        skip('npm ci took over 300 s: is the registry reached?')
    if done.returncode != 0:
        print(done.stdout, done.stderr)
        if re.search(NO_REGISTRY, done.stderr):
            skip('the npm registry is not reached')
        sys.exit(1)
    with open(stamp, 'w', encoding='utf-8') as file:
        file.write(wanted)


def python_with_aiohttp():
    """Returns this interpreter or Debian's, whichever has aiohttp; None if neither has."""
    for python in (sys.executable, '/usr/bin/python3'):
        if os.path.exists(python) and subprocess.run([python, '-c', 'import aiohttp'], capture_output=True, timeout=20,
                                                     check=False).returncode == 0:
            return python
    return None


def run(what, command, folder):
    try:
        code = subprocess.run(command, cwd=folder, timeout=50, check=False).returncode
    except subprocess.TimeoutExpired:
        code = 'none after 50 s'
    print(f'{what}: {"passed" if code == 0 else f"FAILED, exit code {code}"}', flush=True)
    return code == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--models', default=os.path.join(ROOT, 'models'))
    parser.add_argument('--work', default=os.path.join(ROOT, 'build', 'clients'))
    a = parser.parse_args()
    program, models, work = (os.path.abspath(path) for path in (a.program, a.models, a.work))
    node, npm = need_node()
    install(npm, work)
    with Server(program, models) as plain, Server(program, models, '--strict-model', keys=KEYS) as strict:
        good = run('clients.mjs', [node, '--test-reporter=spec', 'clients.mjs', f'--plain={plain.url}',
                                   f'--strict={strict.url}', '--key=key-one', '--limited=key-two'], work)
        script = os.path.join(work, 'script')
        write_model(script)
        with Server(program, models, serve=(script,), chat_format='auto') as tools:
            good &= run('dialects.mjs', [node, '--test-reporter=spec', 'dialects.mjs', f'--url={tools.url}'], work)
        python = python_with_aiohttp()
        if python:
            good &= run('aiohttp_client.py', [python, os.path.join(HERE, 'aiohttp_client.py'), plain.url], HERE)
        else:
            print('aiohttp_client.py: left out, python3-aiohttp is not installed')
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
