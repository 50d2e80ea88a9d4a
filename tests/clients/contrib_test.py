"""The files of contrib/ against a server: the metrics that they name are exported, and their programs accept them.

usage: contrib_test.py --program build/kvasir [--models models]

haproxy, promtool and systemd-analyze check their files if they are installed; a line names those that are not. Exits 0
or 1.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from serving import ROOT, Server, TEXT, ask, check, completion, failures

CONTRIB = os.path.join(ROOT, 'contrib')


def read(*path):
    with open(os.path.join(CONTRIB, *path), encoding='utf-8') as file:
        return file.read()


def exported(program, models):
    """{name of a metric: its kind}, after one answer with a stream and one without."""
    with Server(program, models) as server:
        for stream in (False, True):
            completion(server, **TEXT, stream=stream)
        text = ask(server, 'GET', '/metrics').body.decode()
    return dict(re.findall(r'^# TYPE (\S+) (\S+)$', text, re.MULTILINE))


def series(kinds):
    names = set()
    for name, kind in kinds.items():
        names |= {name + end for end in ('_bucket', '_sum', '_count')} if kind == 'histogram' else {name}
    return names


def metrics_in(text):
    """Returns Kvasir's metric names in PromQL; `kvasir:...` names are recorded by the rules and left out."""
    return set(re.findall(r'\bkvasir_\w+', text))


def expressions(dashboard):
    return [target['expr'] for panel in dashboard['panels'] for target in panel.get('targets', [])]


def check_names(kinds, dashboard):
    known = series(kinds)
    for what, text in (('kvasir.rules.yml', read('prometheus', 'kvasir.rules.yml')),
                       ('kvasir.rules.test.yml', read('prometheus', 'kvasir.rules.test.yml')),
                       ('kvasir.json', '\n'.join(expressions(dashboard)))):
        unknown = metrics_in(text) - known
        check(not unknown, f'{what} names what is not exported: {sorted(unknown)}')
    shown = '\n'.join(expressions(dashboard))
    missing = [name for name in kinds if name.startswith('kvasir_') and name not in shown]
    check(not missing, f'the dashboard does not show {missing}')


def check_places(dashboard):
    """Panels do not overlap, and each has its own id."""
    taken = set()
    for panel in dashboard['panels']:
        p = panel['gridPos']
        cells = {(x, y) for x in range(p['x'], p['x'] + p['w']) for y in range(p['y'], p['y'] + p['h'])}
        check(not cells & taken and p['x'] + p['w'] <= 24, f'panel "{panel["title"]}" lies on another')
        taken |= cells
    ids = [panel['id'] for panel in dashboard['panels']]
    check(len(ids) == len(set(ids)), f'numbers of panels: {ids}')


def run(*command, cwd=None):
    """Returns (success, output) of a command; reports a failure with its output."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=30, check=False)
    return check(done.returncode == 0, f'{" ".join(command)}: {done.stdout} {done.stderr}'), done.stderr + done.stdout


def check_rules(promtool, dashboard, folder):
    run(promtool, 'check', 'rules', 'kvasir.rules.yml', cwd=os.path.join(CONTRIB, 'prometheus'))
    run(promtool, 'test', 'rules', 'kvasir.rules.test.yml', cwd=os.path.join(CONTRIB, 'prometheus'))
    rules = [{'record': f'panel:{i}', 'expr': expr.replace('$__rate_interval', '1m')}
             for i, expr in enumerate(expressions(dashboard))]
    path = os.path.join(folder, 'dashboard.yml')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({'groups': [{'name': 'dashboard', 'rules': rules}]}, file)
    run(promtool, 'check', 'rules', path)


def check_haproxy(haproxy, folder):
    key, cert, both = (os.path.join(folder, name) for name in ('key.pem', 'cert.pem', 'both.pem'))
    run('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '1', '-subj',
        '/CN=localhost')
    with open(both, 'w', encoding='utf-8') as out:
        for path in (cert, key):
            with open(path, encoding='utf-8') as file:
                out.write(file.read())
    text = read('haproxy', 'haproxy.cfg')
    check('/etc/haproxy/kvasir.pem' in text, 'haproxy.cfg: where is the certificate?')
    path = os.path.join(folder, 'haproxy.cfg')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text.replace('/etc/haproxy/kvasir.pem', both))
    _, said = run(haproxy, '-c', '-f', path)
    check('WARNING' not in said, f'haproxy -c: {said}')


def check_unit(analyze, program, folder):
    text = read('systemd', 'kvasir.service')
    check('/usr/bin/kvasir serve' in text, 'kvasir.service: which program?')
    path = os.path.join(folder, 'kvasir.service')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text.replace('/usr/bin/kvasir', program))
    _, said = run(analyze, 'verify', path)
    check('kvasir.service' not in said, f'systemd-analyze verify: {said}')


def check_stop_time(program):
    """systemd's stop timeout is longer than the server's drain timeout."""
    text = read('systemd', 'kvasir.service')
    stop = int(re.search(r'^TimeoutStopSec=(\d+)$', text, re.MULTILINE).group(1))
    drain = int(re.search(r'--drain-timeout (\d+)', text).group(1))
    check(stop > drain + 5, f'TimeoutStopSec={stop}, --drain-timeout {drain}')
    flags = set(re.findall(r'--[a-z-]+', '\n'.join(line for line in text.splitlines() if 'systemctl' not in line)))
    known = subprocess.run([program, 'serve', '--help'], capture_output=True, text=True, timeout=20, check=True).stdout
    check(flags <= set(re.findall(r'--[a-z-]+', known)), f'kvasir.service has unknown flags: {flags}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--models', default=os.path.join(ROOT, 'models'))
    a = parser.parse_args()
    program = os.path.abspath(a.program)
    dashboard = json.loads(read('grafana', 'kvasir.json'))
    check_names(exported(program, os.path.abspath(a.models)), dashboard)
    check_places(dashboard)
    check_stop_time(program)
    sbin = os.environ.get('PATH', '') + ':/usr/sbin'
    with tempfile.TemporaryDirectory() as folder:
        for name, check_file in (('promtool', lambda path: check_rules(path, dashboard, folder)),
                                 ('haproxy', lambda path: check_haproxy(path, folder)),
                                 ('systemd-analyze', lambda path: check_unit(path, program, folder))):
            path = shutil.which(name, path=sbin)
            if path:
                check_file(path)
            else:
                print(f'left out: {name} is not installed')
    print(f'{len(failures)} FAILED' if failures else 'passed')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
