"""The wire format of `kvasir serve` in details that client libraries hide: order, null against absent, headers,
statuses.

usage: contract_test.py --program build/kvasir [--models models] [CHECK ...]

Each check is a function whose name begins with check_, in contract_*.py; if any are named on the command line, only
those run. The server answers with the models that ship, on 127.0.0.1 only. Exits 0 or 1.
"""
import argparse
import os
import sys
import time

import contract_answers
import contract_cache
import contract_life
import contract_models
import contract_page
import contract_refusals
import contract_tools
from serving import ROOT, Server, check, failures


class Bench:
    """Makes servers."""

    def __init__(self, program, models):
        self.program, self.models = program, models

    def server(self, *flags, **more):
        return Server(self.program, self.models, *flags, **more)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--models', default=os.path.join(ROOT, 'models'))
    parser.add_argument('checks', nargs='*')
    a = parser.parse_args()
    bench = Bench(os.path.abspath(a.program), os.path.abspath(a.models))
    parts = (contract_answers, contract_refusals, contract_life, contract_models, contract_page, contract_tools,
             contract_cache)
    checks = {name: run for part in parts
              for name, run in vars(part).items() if name.startswith('check_')}
    for name in a.checks or checks:
        begin = time.monotonic()
        try:
            checks[name](bench)
        except (AssertionError, ArithmeticError, EOFError, LookupError, OSError, RuntimeError, TypeError,
                ValueError) as error:
            check(False, f'{name}: {type(error).__name__}: {error} (line {error.__traceback__.tb_next.tb_lineno})')
        print(f'{name}: {time.monotonic() - begin:.1f} s', flush=True)
    print(f'{len(failures)} FAILED' if failures else 'passed')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
