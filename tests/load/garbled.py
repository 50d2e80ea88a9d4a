"""Requests in pieces or with wrong bytes, for serve_faults.py: the answer must not depend on where a request is split
into packets, and random bytes must get an HTTP answer or a closed connection, never a 500."""
import asyncio
import json
import random

from serve_client import check

BODY = json.dumps({'prompt': [20, 30], 'max_tokens': 2, 'ignore_eos': True, 'seed': 1, 'return_token_ids': True}).encode()
HEAD = (b'POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'
        b'Content-Length: %d\r\nConnection: close\r\n\r\n' % len(BODY))
CHUNKED = (b'POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n'
           b'\r\n%x\r\n%s\r\n7;a=b\r\n       \r\n0\r\nX-T: 1\r\n\r\n' % (len(BODY), BODY))
EXPECT = HEAD.replace(b'\r\n\r\n', b'\r\nExpect: 100-continue\r\n\r\n') + BODY
GET = b'GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
AT_ONCE = 24


async def answer_to(port, pieces, patience=4.0):
    """Returns all that comes back; None if the answer does not end in time. Then the client leaves."""
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    try:
        for i, piece in enumerate(pieces):
            if i:
                await asyncio.sleep(0.001)
            writer.write(piece)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), patience)
    except asyncio.TimeoutError:
        return None
    except (ConnectionResetError, BrokenPipeError):
        return b''
    finally:
        writer.close()


def what_counts(answer):
    """Returns the status and the choices, without ids and times, which differ."""
    head, _, body = (answer or b'').partition(b'\r\n\r\n')
    if head.startswith(b'HTTP/1.1 100'):
        head, _, body = body.partition(b'\r\n\r\n')
    try:
        return head[:12], json.loads(body).get('choices')
    except ValueError:
        return head[:12], body


async def in_groups(port, requests, look, patience=4.0):
    for begin in range(0, len(requests), AT_ONCE):
        group = requests[begin:begin + AT_ONCE]
        for pieces, answer in zip(group, await asyncio.gather(*(answer_to(port, p, patience) for p in group))):
            look(pieces, answer)


async def cut_everywhere(port, step):
    """Sends each request in two packets, split at every `step`-th byte, and byte by byte. Returns the number of
    requests."""
    count = 0
    for request in (HEAD + BODY, CHUNKED, EXPECT, GET):
        whole = what_counts(await answer_to(port, [request]))
        check(whole[0].startswith(b'HTTP/1.1 '), f'no answer to {request[:40]}: {whole}')
        cuts = [[request[:at], request[at:]] for at in range(1, len(request), step)]
        cuts.append([request[at:at + 1] for at in range(len(request))])
        count += len(cuts)

        def look(pieces, answer, whole=whole, request=request):
            check(what_counts(answer) == whole, f'{request[:24]} cut at {len(pieces[0])}: {(answer or b"nothing")[:200]}')

        await in_groups(port, cuts, look)
    return count


def garble(request, chance):
    data = bytearray(request)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at, kind = chance.randrange(len(data)), chance.randrange(6)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at:at + chance.randrange(1, 20)]
        elif kind == 2:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        elif kind == 3:
            data[at:at] = chance.choice((b'\r\n', b'\n', b'\0', b'\r\n\r\n', b': ', b'Content-Length: 9\r\n', b'{', b'"'))
        elif kind == 4:
            data[at:at] = data[at:at + chance.randrange(1, 60)]
        else:
            del data[at:]
        data = data or bytearray(b'\r')
    return bytes(data)


async def at_random(port, count, seed):
    chance = random.Random(seed)
    seen = {}
    requests = []
    for _ in range(count):
        data = garble(chance.choice((HEAD + BODY, CHUNKED, EXPECT, GET)), chance)
        cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(3)))
        requests.append([data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)]) if b > a])

    def look(pieces, answer):
        status = 'left' if answer is None else answer[9:12].decode('latin-1') or 'closed'
        seen[status] = seen.get(status, 0) + 1
        good = status in ('left', 'closed') or (answer.startswith(b'HTTP/1.1 ') and status.isdigit() and status < '500') \
            or status in ('501', '505')
        check(good, f'{b"".join(pieces)!r}: {answer and answer[:200]}')

    await in_groups(port, requests, look, 0.4)
    return seen
