"""A second HTTP implementation against `kvasir serve`: streams, reused connections, clients that leave. Exits 0 or 1.

usage: aiohttp_client.py URL          needs python3-aiohttp; clients_test.py starts it
"""
import asyncio
import json
import sys

import aiohttp

CHAT = {'messages': [{'role': 'user', 'content': 'Tell me of the king.'}], 'max_tokens': 12, 'seed': 7,
        'ignore_eos': True}
LONG = {'prompt': 'Once upon a time', 'max_tokens': 900, 'n': 16, 'ignore_eos': True, 'stream': True}
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print('FAIL:', what, flush=True)


async def whole(session, url):
    async with session.post(f'{url}/v1/chat/completions', json=CHAT) as reply:
        check(reply.status == 200 and reply.content_type == 'application/json', f'chat: {reply.status}')
        return (await reply.json())['choices'][0]['message']['content']


async def streamed(session, url):
    """Reads a stream line by line; returns its text."""
    text, lines = '', []
    async with session.post(f'{url}/v1/chat/completions', json=CHAT | {'stream': True}) as reply:
        check(reply.content_type == 'text/event-stream', f'stream: {reply.headers}')
        async for line in reply.content:
            if line.strip():
                lines.append(line)
    for line in lines[:-1]:
        for choice in json.loads(line[len(b'data: '):])['choices']:
            text += choice['delta'].get('content', '')
    check(lines[-1] == b'data: [DONE]\n', f'the last line of a stream: {lines[-1]}')
    return text


async def scheduler(session, url):
    async with session.get(f'{url}/v1/scheduler') as reply:
        return (await reply.json())['models']['tales']


async def check_reuse(url, opened):
    """Whole answers, streams and errors, alternating on one connection."""
    opened.clear()
    async with traced(opened, limit=1) as session:
        texts = set()
        for _ in range(3):
            texts |= {await whole(session, url), await streamed(session, url)}
            async with session.post(f'{url}/v1/completions', json={'prompt': []}) as reply:
                check(reply.status == 400 and (await reply.json())['error']['param'] == 'prompt', 'an empty prompt')
        check(len(texts) == 1 and '' not in texts, f'one body with a seed, several texts: {texts}')
        check(len(opened) == 1, f'9 requests one after the other took {len(opened)} connections')


async def check_many(url, opened):
    async with traced(opened, limit=0) as session:
        texts = await asyncio.gather(*(streamed(session, url) for _ in range(32)))
        check(len(set(texts)) == 1, f'32 streams at once of one body: {len(set(texts))} texts')


async def check_leaving(url, opened):
    async with traced(opened, limit=0) as session:
        before = (await scheduler(session, url))['cancelled']
        async with session.post(f'{url}/v1/completions', json=LONG) as reply:
            await reply.content.readline()
            check((await scheduler(session, url))['running'] == 16, 'the stream does not run')
            reply.close()
        for _ in range(100):
            state = await scheduler(session, url)
            if state['cancelled'] > before and state['running'] == 0:
                return
            await asyncio.sleep(0.01)
        check(False, f'a client that left is not cancelled in 1 s: {state}')


def traced(opened, limit):
    """A session that records each connection it opens."""
    async def note(*_):
        opened.append(1)

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(note)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=limit), trace_configs=[trace],
                                 timeout=aiohttp.ClientTimeout(total=20))


async def main():
    for run in (check_reuse, check_many, check_leaving):
        await run(sys.argv[1], [])
    print(f'{len(failures)} FAILED' if failures else 'passed')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    asyncio.run(main())
