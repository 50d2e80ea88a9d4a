"""Checks of contract_test.py: conversations of agents with a model whose answers are known: how much of a prompt is
reused, and what the server reports if it is not."""
import json
import os
import tempfile

from script_model import TEMPLATE, write_model
from serving import ask, chat, check

TOOLS = [{'type': 'function', 'function': {'name': name, 'description': f'{name}: ' + 'what it does. ' * 8,
                                           'parameters': {'type': 'object', 'properties': {}}}}
         for name in ('get_weather', 'get_time', 'read_file')]
SYSTEM = 'You are an agent that works in a folder. ' * 12


def script_server(bench, folder, *flags, template=None):
    model = os.path.join(folder, 'script')
    write_model(model, template)
    return bench.server(*flags, serve=(model,), chat_format='auto')


def ids_of(server, body):
    return ask(server, 'POST', '/tokenize', body).json['tokens']


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


class Trace:
    """Sends requests one after the other and compares the reused tokens with what the prompts have in common."""

    def __init__(self, server):
        self.server, self.kept, self.repeated, self.reused = server, [], 0, 0

    def send(self, messages, what, **body):
        body = {'messages': messages, 'max_tokens': 80, 'return_token_ids': True} | body
        ids = ids_of(self.server, {k: v for k, v in body.items() if k in ('messages', 'tools')})
        reply = chat(self.server, **body)
        answer = reply.json
        check(reply.status == 200 and answer['choices'][0]['prompt_token_ids'] == ids, f'{what}: {reply}')
        cached = answer['usage']['prompt_tokens_details']['cached_tokens']
        most = max((common(ids, text) for text in self.kept), default=0)
        least = min(most, len(ids) - 1)
        check(cached <= least, f'{what}: {cached} tokens used again, and only {least} were there')
        self.repeated += least
        self.reused += cached
        expected = most if most < len(ids) and any(len(t) > most and common(ids, t) == most for t in self.kept) else None
        told = answer['kvasir'].get('differs_at')
        check(told is None or told == expected or cached < least, f'{what}: differs_at {told}, not {expected}')
        check((told is None) == (expected is None), f'{what}: differs_at is {told}, where {expected} was expected')
        self.kept.append(ids + answer['choices'][0]['token_ids'])
        return answer

    def check_share(self, what, least=0.97):
        share = self.reused / self.repeated
        print(f'  {what}: {self.reused} of {self.repeated} repeated tokens used again, {share:.3f}')
        check(share >= least, f'{what}: only {share:.3f} of what is repeated is used again')


def turns(count, system=SYSTEM):
    """The prompts of an agent's turns: a question, a call, its result, a reply."""
    messages = [{'role': 'system', 'content': system}]
    for turn in range(count):
        messages = messages + [{'role': 'user', 'content': 'weather'}]
        yield messages
        call = {'id': f'call{turn}', 'type': 'function',
                'function': {'name': 'get_weather', 'arguments': json.dumps({'city': f'City {turn}', 'days': turn})}}
        messages = messages + [{'role': 'assistant', 'content': 'Let me look.', 'reasoning_content': f'Turn {turn}.',
                                'tool_calls': [call]},
                               {'role': 'tool', 'tool_call_id': f'call{turn}', 'content': f'{turn} degrees. ' * 20}]
        yield messages
        messages = messages + [{'role': 'assistant', 'content': f'It has {turn} degrees.'}]


def check_an_agents_conversation_is_used_again(bench):
    with tempfile.TemporaryDirectory() as folder, script_server(bench, folder) as server:
        trace = Trace(server)
        for n, messages in enumerate(turns(6)):
            trace.send(messages, f'request {n}', tools=TOOLS)
            # Clients ask for a title between two turns, with a different system message.
            trace.send([{'role': 'system', 'content': 'Write a title of five words.'}, messages[1]], f'title {n}',
                       max_tokens=8)
        trace.check_share('an agent with titles between its turns')


def check_a_date_parts_the_prompts(bench):
    with tempfile.TemporaryDirectory() as folder, script_server(bench, folder) as server:
        trace = Trace(server)
        answers = [trace.send(messages, f'day {day}', tools=TOOLS) for day in (1, 2)
                   for messages in turns(2, SYSTEM + f'Today is 2026-12-0{day}. ' + SYSTEM)]
        trace.check_share('two days of an agent')
        own = answers[4]['kvasir']
        check(own['cache_text'].startswith('1') and own['request_text'].startswith('2'), f'the two days: {own}')


def check_dropped_reasoning_parts_the_prompts(bench):
    """As in Qwen3's template: reasoning before the user's last question is not written any more."""
    dropping = ('{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == "user" %}'
                '{% set ns.last = loop.index0 %}{% endif %}{% endfor %}'
                + TEMPLATE.replace('{% if m.reasoning_content %}', '{% if m.reasoning_content and loop.index0 > ns.last %}'))
    with tempfile.TemporaryDirectory() as folder, script_server(bench, folder, template=dropping) as server:
        trace = Trace(server)
        answers = [trace.send(messages, f'request {n}', tools=TOOLS) for n, messages in enumerate(turns(4))]
        trace.check_share('a template that drops earlier reasoning')
        parted = [n for n, answer in enumerate(answers) if answer['kvasir'].get('request_text', '').startswith('Let me')]
        check(parted == [2, 4, 6], f'the first request of a turn begins anew at the reasoning before it: {parted}')


def check_a_billing_line_parts_nothing(bench):
    with tempfile.TemporaryDirectory() as folder, script_server(bench, folder) as server:
        before = None
        for n in range(3):
            body = {'max_tokens': 40, 'messages': [{'role': 'user', 'content': 'Hello.'}],
                    'system': [{'type': 'text', 'text': f'x-anthropic-billing-header: cc_version=2.{n}; cch={n * 7919};'},
                               {'type': 'text', 'text': SYSTEM}]}
            reply = ask(server, 'POST', '/v1/messages?beta=true', body, [('x-api-key', 'k'), ('anthropic-version', 'x')])
            usage = reply.json['usage']
            check(reply.json['kvasir']['ignored'] == ['system: x-anthropic-billing-header'], f'{reply}')
            if before:
                check(usage['input_tokens'] == 1, f'all but the last token is used again: {usage}')
                check(usage['cache_read_input_tokens'] + 1 == sum(before[k] for k in (
                    'input_tokens', 'cache_read_input_tokens')), f'{before}, {usage}')
            before = usage
