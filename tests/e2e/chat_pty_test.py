"""kvasir chat on a terminal: a conversation that was edited, undone, regenerated, interrupted, full, saved or loaded
continues with the same bits as a straight one through a pipe. The receipts of the answers prove it.

usage: chat_pty_test.py --program build/kvasir
"""
import argparse
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = None
# Turns end with a token of the model.
TEMPLATE = """{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|endoftext|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""
# Writes earlier answers in capitals, like templates that drop earlier reasoning.
REWRITING = TEMPLATE.replace('message.content', "(message.content | upper if message.role == 'assistant' else message.content)")
RECEIPT = re.compile(r'\[receipt ([0-9a-f]{32})\]')
REUSED = re.compile(r'\[(\d+) of (\d+) tokens reused(?:, the text differs at token (\d+))?;')
FIRST, SECOND, THIRD, OTHER = 'Once upon a time', 'The fox ran.', 'And then?', 'A dog sat down.'


class Folder(unittest.TestCase):
    def setUp(self):
        self.made = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.made.name)
        (self.folder / 'chat.jinja').write_text(TEMPLATE)
        (self.folder / 'rewriting.jinja').write_text(REWRITING)

    def tearDown(self):
        self.made.cleanup()

    def command(self, *more, template='chat.jinja', n='12'):
        return [PROGRAM, 'chat', 'tales', '--greedy', '--receipt', '-n', n, '--chat-template',
                str(self.folder / template), *more]

    def environment(self):
        return {**os.environ, 'TERM': 'dumb', 'HOME': str(self.folder), 'KVASIR_MODELS': str(ROOT / 'models')}

    def piped(self, lines, *more, **how):
        return subprocess.run(self.command(*more, **how), input='\n'.join(lines) + '\n', capture_output=True, text=True,
                              timeout=60, env=self.environment(), cwd=ROOT, check=True)

    def straight(self, lines, *more, **how):
        """Returns the receipts of a conversation without any undo."""
        receipts = RECEIPT.findall(self.piped(lines, *more, **how).stderr)
        self.assertEqual(len(receipts), len(lines))
        return receipts


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, command, environment):
        self.seen = ''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(ROOT)
                os.execve(command[0], command, environment)
            finally:
                os._exit(127)    # only if execve failed: this is a copy of the test

    def type(self, text):
        os.write(self.fd, text.encode())

    def until_it_reads(self, seconds=30):
        """Waits for the line editor, which takes keys one by one; a key typed before is shown twice."""
        end = time.monotonic() + seconds
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            if time.monotonic() > end:
                raise AssertionError(f'the line editor does not come: {self.seen!r}')
            time.sleep(0.01)

    def until(self, pattern, seconds=30):
        """Waits for the pattern; returns the match and discards the output up to its end."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.seen)
            if match:
                self.seen = self.seen[match.end():]
                return match
            ready, _, _ = select.select([self.fd], [], [], 0.2)
            if ready:
                try:
                    self.seen += os.read(self.fd, 1 << 14).decode(errors='replace')
                    continue
                except OSError:
                    pass
                raise AssertionError(f'the program ended before {pattern!r}: {self.seen!r}')
            if time.monotonic() > end:
                raise AssertionError(f'{pattern!r} does not come: {self.seen!r}')

    def ask(self, line):
        """Types a line and returns the receipt of its answer."""
        self.type(line + '\n')
        return self.until(RECEIPT).group(1)

    def close(self):
        self.type('/quit\n')
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 1 << 14)
                except OSError:
                    pass
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError('the program does not end')


class OnATerminal(Folder):
    def terminal(self, *more, **how):
        child = Terminal(self.command(*more, **how), self.environment())
        self.addCleanup(lambda: self.assertEqual(child.close(), 0))
        child.until('/help for what else there is')
        return child

    def test_edit_regenerate_and_undo(self):
        straight = self.straight([FIRST, SECOND, THIRD])
        other = self.straight([FIRST, OTHER, THIRD])
        chat = self.terminal()
        self.assertEqual([chat.ask(FIRST), chat.ask(SECOND), chat.ask(THIRD)], straight)
        self.assertEqual(chat.ask('/regen'), straight[2])
        chat.type('/undo\n')
        chat.until('2 turns left')
        self.assertEqual(chat.ask('/edit ' + OTHER), other[1])
        self.assertEqual(chat.ask(THIRD), other[2])
        chat.type('/undo\n/undo\n')
        chat.until('1 turn left')
        self.assertEqual(chat.ask(SECOND), straight[1])

    def test_an_old_text_is_there_to_be_changed(self):
        chat = self.terminal()
        chat.ask(FIRST)
        chat.ask('The fox')
        chat.type('/edit\n')
        chat.until('> /edit The fox')
        self.assertEqual(chat.ask(' ran.'), self.straight([FIRST, SECOND])[1])

    def test_another_answer_has_the_next_seed(self):
        def sampled(seed):
            return ('--seed', seed, '--temp', '0.9')
        plain = [word for word in self.command() if word != '--greedy']
        self.command = lambda *more, **how: [*plain, *more]
        chat = self.terminal(*sampled('7'))
        first, again = chat.ask(FIRST), chat.ask('/regen')
        self.assertEqual([first], self.straight([FIRST], *sampled('7')))
        self.assertEqual([again], self.straight([FIRST], *sampled('8')))
        self.assertEqual(chat.ask('/edit ' + FIRST), first)

    def test_ctrl_c_ends_an_answer_and_drops_what_is_typed(self):
        straight = self.straight([FIRST, SECOND], n='60')
        # Without a cache the bits are the same, but an answer takes seconds.
        chat = self.terminal('--cache', 'none', '--threads', '1', n='60')
        self.assertEqual(chat.ask(FIRST), straight[0])
        chat.until('> ')
        chat.until_it_reads()
        chat.type(OTHER + '\n')
        chat.until(r'sat down\.\r\n\s*\S+')    # the answer has begun
        chat.type('\x03')
        chat.until(REUSED)
        chat.until('> ')
        chat.until_it_reads()
        chat.type('words that are dropped')
        chat.until('dropped')
        chat.type('\x03')
        chat.until('/quit ends the chat')
        self.assertEqual(chat.ask('/edit ' + SECOND), straight[1])

    def test_a_full_context_leaves_the_conversation_as_it_was(self):
        straight = self.straight([FIRST, SECOND], '--ctx', '128')
        chat = self.terminal('--ctx', '128')
        self.assertEqual(chat.ask(FIRST), straight[0])
        chat.type('a long line of words ' * 20 + '\n')
        chat.until('the context is full')
        chat.type('/regen\n')
        chat.until('the context is full')
        chat.type('/undo\n')
        chat.until('1 turn left')
        self.assertEqual(chat.ask(SECOND), straight[1])
        chat.type('/edit ' + 'a long line of words ' * 20 + '\n')
        chat.until('the context is full')
        self.assertEqual(chat.ask('/regen'), straight[1])

    def test_several_lines_are_one_turn(self):
        chat = self.terminal()
        block = chat.ask('"""\n/one\ntwo\n"""')
        self.assertEqual(chat.ask('/edit /one\\\ntwo'), block)
        chat.type('"""\nthat is dropped\n')
        chat.until('dropped')
        time.sleep(0.2)
        chat.type('\x03')
        chat.until('/quit ends the chat')
        chat.type('/undo\n')
        chat.until('0 turns left')
        self.assertEqual(chat.ask('"""\n/one\ntwo\n"""'), block)

    def test_saved_and_loaded(self):
        file = self.folder / 'conversation.kv'
        straight = self.straight([FIRST, SECOND, THIRD])
        other = self.straight([FIRST, OTHER])
        first = self.terminal()
        first.ask(FIRST), first.ask(SECOND)
        first.type(f'/save {file}\n/stats\n')
        first.until('2 turns; ')
        second = self.terminal()
        second.ask(OTHER)
        second.type(f'/load {file}\n')
        second.until(re.escape(f'> {SECOND}'))
        self.assertEqual(second.ask(THIRD), straight[2])
        second.type('/undo\n')
        second.until('2 turns left')
        self.assertEqual(second.ask('/edit ' + OTHER), other[1])


class ThroughAPipe(Folder):
    def test_a_damaged_conversation_changes_nothing(self):
        file = self.folder / 'conversation.kv'
        beside = self.folder / 'conversation.kv.json'
        self.piped([FIRST, f'/save {file}'])
        good = json.loads(beside.read_text())
        last = good['turns'][-1]
        bad = ['', '{', '[]', '{"kvasir_conversation": 1}', json.dumps({**good, 'kvasir_conversation': 2}),
               json.dumps({**good, 'turns': [{**last, 'ids': [4096]}]}),
               json.dumps({**good, 'turns': [{**last, 'ids': last['ids'][:-1] + [1]}]}),
               json.dumps({**good, 'turns': [{**last, 'user': 1}]}), None]
        straight = self.straight([OTHER, THIRD])
        for text in bad:
            beside.unlink(missing_ok=True)
            if text is not None:
                beside.write_text(text)
            done = self.piped([OTHER, f'/load {file}', THIRD])
            self.assertEqual(RECEIPT.findall(done.stderr), straight, text)
            self.assertIn('conversation.kv', done.stderr)

    def test_a_system_message_and_a_template_that_rewrites(self):
        with_system = self.piped([FIRST, '/system You are brief.', SECOND]).stderr
        self.assertRegex(with_system, REUSED)
        reused, _, differs = REUSED.findall(with_system)[1]
        self.assertEqual(reused, differs)
        self.assertIn(int(differs), range(1, 12), 'after <|im_start|>')
        rewritten = REUSED.findall(self.piped([FIRST, SECOND], template='rewriting.jinja').stderr)
        self.assertNotEqual(rewritten[1][2], '')
        self.assertLess(int(rewritten[1][0]), int(rewritten[0][1]) + 12)
        kept = REUSED.findall(self.piped([FIRST, SECOND]).stderr)
        self.assertEqual(kept[1][2], '')
        self.assertGreaterEqual(int(kept[1][0]), int(kept[0][1]) + 11)

    def test_one_turn_of_run(self):
        def run(*more):
            return subprocess.run([PROGRAM, 'run', 'tales', '--greedy', '-n', '12', *more], capture_output=True,
                                  text=True, timeout=60, env=self.environment(), cwd=ROOT, check=False)
        template = ('--chat-template', str(self.folder / 'chat.jinja'))
        one = json.loads(run('--chat', *template, '-p', FIRST, '--json').stdout)
        self.assertEqual([one['receipt']], self.straight([FIRST]))
        said = run('--chat', *template, '-p', FIRST)
        self.assertEqual(said.stdout, one['text'] + '\n')
        system = json.loads(run('--chat', *template, '-p', FIRST, '--system', 'You are brief.', '--json').stdout)
        self.assertEqual([system['receipt']], self.straight([FIRST], '--system', 'You are brief.'))
        # A control token in a message is text; the one of the template is one token.
        spelled = json.loads(run('--chat', *template, '-p', '<|endoftext|>', '--json').stdout)
        letter = json.loads(run('--chat', *template, '-p', 'a', '--json').stdout)
        self.assertGreater(spelled['prompt_tokens'], letter['prompt_tokens'] + 3)
        none = run('--chat', '-p', FIRST)
        self.assertEqual(none.returncode, 2)
        self.assertIn('no chat template', none.stderr)
        self.assertIn('--chat-template FILE', none.stderr)

    def test_images_are_refused(self):
        for command in (['run', 'tales', '-p', 'x'], ['chat', 'tales']):
            done = subprocess.run([PROGRAM, *command, '--image', 'a.png'], input='', capture_output=True, text=True,
                                  timeout=60, env=self.environment(), cwd=ROOT, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn('--image: Kvasir runs text only', done.stderr)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    arguments, rest = parser.parse_known_args()
    PROGRAM = str(pathlib.Path(arguments.program).resolve())
    unittest.main(argv=[sys.argv[0], *rest])
