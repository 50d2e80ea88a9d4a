#!/usr/bin/env python3
"""kvasir pull killed by kill -9 at random moments, repeatedly, until it finishes. Exits 0 or 1.

usage: pull_kills.py --program build/kvasir

15 kills, 100 with KVASIR_TEST_ALL=1. After each kill no blob may differ from its name, no link may dangle, the model
must not be found unless it is whole, and no later pull may fetch a kept byte again. Two pulls run at once in every
third round, and one of them is killed.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from hub_server import Hub, check_store

KILLS = 100 if os.environ.get('KVASIR_TEST_ALL') == '1' else 15
NAME = 'fox/pair'


def repository(some):
    files = {f'model-0000{i}-of-00002.safetensors': some.randbytes(25_000_000 + i) for i in (1, 2)}
    return files | {'config.json': b'{"model_type": "llama"}', 'model.safetensors.index.json': some.randbytes(900),
                    'tokenizer.json': some.randbytes(30_000)}


class Kills:
    def __init__(self, program, hub, cache):
        self.program, self.hub, self.cache = program, hub, cache
        self.env = os.environ | {'HF_HUB_CACHE': cache, 'XDG_CACHE_HOME': cache + '-other', 'HF_TOKEN': ''}
        self.kills = 0

    def start(self):
        return subprocess.Popen([self.program, 'pull', NAME, '--endpoint', self.hub.url], env=self.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def kept(self):
        blobs = os.path.join(self.cache, 'models--fox--pair', 'blobs')
        return sum(os.path.getsize(os.path.join(blobs, name)) for name in os.listdir(blobs)) if os.path.isdir(blobs) else 0

    def check(self):
        wrong = check_store(self.cache)
        found = subprocess.run([self.program, 'list', '--json'], env=self.env, capture_output=True, text=True, check=True)
        whole = '"models":["fox/pair"]' in found.stdout
        return wrong + (['it looks whole'] if whole and self.kept() != self.all_bytes() else [])

    def all_bytes(self):
        return sum(len(body) for body in self.hub.repos[NAME].values())

    def kill_after(self, seconds, beside):
        """Returns True if the pull finished before the kill."""
        others = [self.start()] if beside else []
        before = self.kept()
        pull = self.start()
        time.sleep(seconds)
        for process in [pull] + others[:self.kills % 2]:
            process.kill()
        ended = pull.wait() == 0
        self.kills += 1
        for process in others:
            process.kill()
        for process in [pull] + others:
            process.communicate()
        if self.kept() < before:
            raise SystemExit(f'kill {self.kills}: {before} bytes were kept, now {self.kept()}')
        return ended


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    a = parser.parse_args()
    some = random.Random(5)
    hub = Hub({NAME: repository(some)})
    hub.speed = 10_000_000
    folder = tempfile.mkdtemp(prefix='kvasir-kills-')
    rounds = resumed = 0
    try:
        while rounds < KILLS:
            kills = Kills(os.path.abspath(a.program), hub, os.path.join(folder, f'hub-{rounds}'))
            ended = False
            while not ended and rounds < KILLS:
                ended = kills.kill_after(some.uniform(0.02, 0.5), rounds % 3 == 0)
                rounds += 1
                resumed += kills.kept() > 0
                wrong = kills.check()
                if wrong:
                    raise SystemExit(f'kill {rounds}: {wrong}')
            kept, hub.speed = kills.kept(), 0
            with hub.lock:
                hub.content_bytes = 0
            pull = kills.start()
            error = pull.communicate()[1]
            hub.speed = 10_000_000
            if pull.returncode != 0 or kills.kept() != kills.all_bytes() or kills.check():
                raise SystemExit(f'the last pull: exit {pull.returncode}, {error}, {kills.check()}')
            if hub.content_bytes > kills.all_bytes() - kept:
                raise SystemExit(f'{hub.content_bytes} bytes came, {kills.all_bytes() - kept} were missing')
            snapshots = os.path.join(kills.cache, 'models--fox--pair', 'snapshots')
            (commit,) = os.listdir(snapshots)
            for name, body in hub.repos[NAME].items():
                with open(os.path.join(snapshots, commit, name), 'rb') as file:
                    if file.read() != body:
                        raise SystemExit(f'{name}: other bytes')
            shutil.rmtree(kills.cache)
        print(f'{rounds} kills, {resumed} of them in mid-way: every file is right')
    finally:
        hub.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main())
