"""Renders chat templates with Jinja 3.1.2, configured as Hugging Face's transformers configures it.

usage: jinja_oracle.py < CASES > RESULTS       one JSON object a line: {"template", "context", "now"} in, a result out

As a module: render(template, context, now) -> {"output": text}, or {"error": kind, "message": text} with the kinds
"raised" (by raise_exception), "syntax", "failed" (every other exception) and "limit" (it took too long or too much).
Run it with the Python that has Debian's python3-jinja2: /usr/bin/python3.
"""
import datetime
import functools
import json
import resource
import signal
import sys
import time

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

SECONDS, BYTES = 5, 1 << 30
EPOCH = datetime.datetime(1970, 1, 1)


class Raised(jinja2.exceptions.TemplateError):
    """Raised by raise_exception: a class of its own, so that no other TemplateError is taken for it."""


class OutOfTime(BaseException):
    """The render took longer than SECONDS. No Exception, so that no filter swallows it."""


class Generation(jinja2.ext.Extension):
    """{% generation %}...{% endgeneration %} marks what the model wrote; here it prints its body."""
    tags = {'generation'}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(('name:endgeneration',), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method('body_of'), [], [], body, lineno=line)

    def body_of(self, caller):
        return caller()


def raise_exception(message):
    raise Raised(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters['tojson'] = tojson
    made.globals['raise_exception'] = raise_exception
    made.globals['strftime_now'] = strftime_now
    return made


def strftime_now(format):
    """Without a time zone, as datetime.now() is: %z and %Z are empty."""
    return (EPOCH + datetime.timedelta(seconds=NOW[0])).strftime(format)


NOW = [0]
ENVIRONMENT = make_environment()


def stop(_signal, _frame):
    raise OutOfTime()


@functools.lru_cache(maxsize=64)
def compiled(template):
    return ENVIRONMENT.from_string(template)


def attempt(template, context):
    """The result, with nothing guarded."""
    try:
        return {'output': compiled(template).render(context)}
    except Raised as error:
        return {'error': 'raised', 'message': str(error)}
    except jinja2.exceptions.TemplateSyntaxError as error:
        return {'error': 'syntax', 'message': error.message, 'line': error.lineno}
    except Exception as error:  # pylint: disable=broad-except
        return {'error': 'failed', 'message': f'{type(error).__name__}: {error}'}


def render(template, context, now=None):
    """The result for one template; a program that hangs or eats memory gives "limit"."""
    NOW[0] = time.time() if now is None else now
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, hard))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return attempt(template, context)
    except OutOfTime:
        return {'error': 'limit', 'message': f'more than {SECONDS} s'}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def main():
    for line in sys.stdin:
        case = json.loads(line)
        print(json.dumps(render(case['template'], case['context'], case.get('now'))), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
