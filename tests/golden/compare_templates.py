#!/usr/bin/env python3
"""Kvasir's Jinja interpreter against python3-jinja2: chat templates with invented conversations, and random programs.

usage: compare_templates.py --program PATH/jinja_cases [--templates FOLDER] [--conversations 200] [--programs 10000]
                            [--edge] [--time]

The program reads one JSON object a line, {"template", "context", "now"}, and writes one a line, {"output": text} or
{"error": kind, "message": text, "line": number}. Both must render the same, or both must fail; the texts of
raise_exception must be equal. Kvasir may refuse the constructs of REFUSED and integers of more than 64 bits ("limit").
Without Jinja this prints a line that begins with "skipped: " and passes."""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

BATCH, SHOWN, SECONDS = 2000, 10, 120
REFUSED = {'include', 'import', 'from', 'extends', 'block', 'autoescape', 'lipsum', 'pprint', 'urlize', 'wordwrap',
           'xmlattr', 'striptags', 'filesizeformat', 'random',
           'complex', 'names'}  # complex numbers; names of characters: "\\N{BULLET}"
ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = pathlib.Path(os.environ.get('KVASIR_DATA', ROOT / '../shared/data')) / 'chat-templates'
ADDRESS = re.compile(r' at 0x[0-9a-f]{6,}', re.IGNORECASE)

try:
    import jinja2
except ImportError:
    print('skipped: no jinja2 for this Python (try: apt-get install python3-jinja2, and run /usr/bin/python3)')
    sys.exit(0)
if jinja2.__version__ != '3.1.2':
    print(f'skipped: jinja2 is {jinja2.__version__}, and the interpreter follows 3.1.2')
    sys.exit(0)

from jinja_oracle import ENVIRONMENT, render                     # noqa: E402 (they import jinja2)
from jinja_edges import EDGE_CASES                               # noqa: E402
from jinja_programs import programs                              # noqa: E402
from jinja_conversations import conversations                                    # noqa: E402


def now_of(number):
    """Returns a time for each case, from 1970 to 2037."""
    return number * 48_271_007 % 2_114_380_800


def answers_of(program, lines):
    """Returns the answers up to the first missing one, and why it is missing."""
    try:
        done = subprocess.run([program], input='\n'.join(lines).encode() + b'\n', capture_output=True, timeout=SECONDS)
        answers, why = done.stdout, f'status {done.returncode}: {done.stderr.decode(errors="replace")[-400:]}'
    except subprocess.TimeoutExpired as error:
        answers, why = error.stdout or b'', f'no answer within {SECONDS} s'
    return [json.loads(line) for line in answers.decode().split('\n')[:-1]], why


def ours(program, lines):
    """Returns the program's answers. If it dies, the answer is "died", and a new process gets the remaining lines."""
    parsed = []
    while len(parsed) < len(lines):
        more, why = answers_of(program, lines[len(parsed):])
        parsed += more
        if len(parsed) < len(lines):
            parsed.append({'error': 'died', 'message': why})
    return parsed


def is_refusal(message):
    """True if the message of an "unsupported" names something that may be refused."""
    words = set(re.findall(r'\w+', message))
    kind = re.search(r'\b(filter|test)\b', message)
    known = {'filter': ENVIRONMENT.filters, 'test': ENVIRONMENT.tests}[kind.group()] if kind else {}
    quoted = set(re.findall(r'[\'"`]([\w.]+)[\'"`]', message))
    unknown = kind and quoted and not quoted & set(known)
    return bool(words & REFUSED or unknown)


def judge(mine, theirs):
    """Returns one of: same, agreed error, refused, limit, left out, DIFFERENT."""
    if theirs.get('error') == 'limit' or ADDRESS.search(theirs.get('output', '')):
        return 'left out'
    kind = mine.get('error')
    if kind == 'died':
        return 'DIFFERENT'
    if kind == 'unsupported':
        if 'error' in theirs and theirs['error'] != 'raised':
            return 'agreed error'
        return 'refused' if is_refusal(mine.get('message', '')) else 'DIFFERENT'
    if kind == 'limit' and theirs.get('error') in (None, 'raised'):
        return 'limit' if '64' in mine.get('message', '') else 'DIFFERENT'
    if kind is None or 'error' not in theirs:
        return 'same' if mine.get('output') == theirs.get('output') and kind == theirs.get('error') else 'DIFFERENT'
    raised = 'raised' in (kind, theirs['error'])
    same = not raised or (kind == theirs['error'] and mine.get('message') == theirs['message'])
    return 'agreed error' if same else 'DIFFERENT'


def case_line(template, context, now):
    return json.dumps({'template': template, 'context': context, 'now': now})


def expected(line):
    """Returns the oracle's result for one line, from the same text that the program gets."""
    case = json.loads(line)
    return render(case['template'], case['context'], case['now'])


def shrunk(program, template, context, now):
    """Returns the fewest lines of the template that still differ in the same way, and the part of the context they
    use."""
    lines, size = template.split('\n'), 2
    renders = 'output' in render(template, context, now)
    while size:
        for at in range(len(lines) - size + 1):
            fewer = lines[:at] + lines[at + size:]
            line = case_line('\n'.join(fewer), context, now)
            theirs = expected(line)
            if ('output' in theirs) == renders and judge(ours(program, [line])[0], theirs) == 'DIFFERENT':
                lines, size = fewer, 3
                break
        size -= 1
    text = '\n'.join(lines)
    return text, {name: value for name, value in context.items() if re.search(rf'\b{re.escape(name)}\b', text)}


class Comparison:
    """Cases of one kind: counts results and shows the first differences."""

    def __init__(self, program, name, shrink):
        self.program, self.name, self.shrink = program, name, shrink
        self.counts, self.refusals = collections.Counter(), collections.Counter()
        self.shown = self.total = 0

    def batch(self, cases):
        """`cases` are (label, template, context)."""
        numbered = list(enumerate(cases, self.total))
        lines = [case_line(template, context, now_of(number)) for number, (_, template, context) in numbered]
        self.total += len(cases)
        for (number, case), line, mine in zip(numbered, lines, ours(self.program, lines), strict=True):
            theirs = expected(line)
            verdict = judge(mine, theirs)
            self.counts[verdict] += 1
            if verdict in ('refused', 'limit'):
                self.refusals[mine['message'][:60]] += 1
            if verdict == 'DIFFERENT':
                self.show(number, case, mine, theirs)

    def show(self, number, case, mine, theirs):
        self.shown += 1
        if self.shown > SHOWN:
            return
        label, template, context = case
        if self.shrink and mine.get('error') != 'died':
            template, context = shrunk(self.program, template, context, now_of(number))
            line = case_line(template, context, now_of(number))
            mine, theirs = ours(self.program, [line])[0], expected(line)
        print(f'--- {self.name} {number} {label} (now {now_of(number)})')
        print(f'template  {template!r}' if self.shrink else f'template  {label}')
        print(f'context   {json.dumps(context, ensure_ascii=False)[:600]}')
        for who, result in (('Kvasir', mine), ('Jinja', theirs)):
            print(f'{who:9} {clip(result, mine, theirs)}')

    def finish(self):
        """Prints the line of this kind; returns True if all agree."""
        more = ''.join(f', {count} {verdict}' for verdict, count in self.counts.items()
                       if verdict not in ('same', 'agreed error', 'DIFFERENT'))
        print(f'{self.name}: {self.total} cases, {self.counts["same"]} render the same, '
              f'{self.counts["agreed error"]} fail in both{more}, {self.counts["DIFFERENT"]} differ')
        for message, count in self.refusals.most_common(20):
            print(f'    {count} x {message}')
        return not self.counts['DIFFERENT']


def clip(result, mine, theirs):
    """Returns the result as one line; for long outputs, the part where they begin to differ."""
    if 'output' not in result:
        return json.dumps(result, ensure_ascii=False)[:400]
    pair = [one.get('output', '') for one in (mine, theirs)]
    same = next((at for at, (a, b) in enumerate(zip(*pair)) if a != b), min(map(len, pair)))
    start = max(0, same - 60) if all('output' in one for one in (mine, theirs)) else 0
    return ('... ' if start else '') + repr(result['output'][start:start + 300])


def batches(cases):
    """Yields lists of at most BATCH cases."""
    batch = []
    for case in cases:
        batch.append(case)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def compare(program, name, cases, shrink):
    comparison = Comparison(program, name, shrink)
    for batch in batches(cases):
        comparison.batch(batch)
    return comparison.finish()


def compare_files(args):
    """Compares every template of the folder over the same conversations."""
    files = sorted(args.templates.glob('*.jinja')) if args.templates else []
    if not files:
        print(f'skipped: no templates at {args.templates}')
        return True
    made, good = list(conversations(args.seed, args.conversations)), True
    for file in files:
        text = file.read_text(encoding='utf-8')
        good &= compare(args.program, file.stem, ((file.name, text, conversation) for conversation in made), False)
    return good


def show_times(args):
    """Prints the median time of 200 renderings of 100 messages with each template."""
    messages = [{'role': 'assistant' if i % 2 else 'user',
                 'content': f'Message number {i}, with a sentence or two of text, as people write them. No longer.'}
                for i in range(100)]
    context = {'messages': messages, 'bos_token': '<s>', 'eos_token': '</s>', 'add_generation_prompt': True}
    paths = sorted(args.templates.rglob('*.jinja'))
    lines = [json.dumps({'template': path.read_text(), 'context': context, 'repeat': 200}) for path in paths]
    for path, answer in zip(paths, ours(args.program, lines), strict=True):
        ms = answer.get('median_ms')
        print(f'{path.name:<60}', f'{ms:.3f} ms' if ms else answer.get('message'))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True, type=pathlib.Path)
    parser.add_argument('--templates', type=pathlib.Path, default=TEMPLATES, help='a folder of *.jinja')
    parser.add_argument('--conversations', type=int, default=200)
    parser.add_argument('--programs', type=int, default=100000 if os.environ.get('KVASIR_TEST_ALL') else 10000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--edge', action='store_true', help='the small programs by hand too')
    parser.add_argument('--time', action='store_true', help='only the time that 100 messages take, by template')
    args = parser.parse_args()
    if args.time:
        show_times(args)
        return 0
    good = compare_files(args) if args.conversations else True
    if args.edge:
        good &= compare(args.program, 'edge', (('', *case) for case in EDGE_CASES), True)
    if args.programs:
        cases = (('', *case) for case in programs(args.seed, args.programs))
        good &= compare(args.program, 'programs', cases, True)
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
