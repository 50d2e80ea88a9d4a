"""Random Jinja programs, the same for the same seed. The small ones by hand are in jinja_edges.py.

usage: jinja_programs.py [--seed N] [--count N]          one JSON object a line, {"template", "context"}

As a module: programs(seed, count) yields (template, context). Most random programs have the right types, so that about
four of five render; contexts contain only the names that the template mentions.
RULES is the grammar: <kind> in a rule stands for an expression of that kind; LEAVES has the shortest ones.
"""
import argparse
import json
import random
import re
import sys

PIECES = ['a', 'b', 'A', 'ab', 'Hello', 'world', 'x y', ' ', '  ', 'foo bar', 'é', 'ß', '日本', '😀', '1', '23', '-4',
          '1.5',
          '<b>', '&', '"', "'", '\\', '\n', '\t', 'a,b', ';', '_', '%', 'MiXed', 'Ünï', 'e\u0301', '\u00a0', '\u2028',
          '#',
          'the quick brown fox', 'ΑΣ', 'ǆ', '\u200b', '/', '{', '}', 'TRUE', 'ﬁ', '٣', '²', '\x7f', '\x00', 'zebra',
          'İ']
ESCAPES = ['\\n', '\\t', '\\x41', '\\u00e9', '\\U0001f600', '\\101', '\\\\', '\\a', '\\r', '\\N{BULLET}', '\\q', '\\0',
           '\\u2028']
NUMBERS = ['0', '1', '2', '3', '7', '10', '42', '100', '255', '1_000', '0x1F', '0b101', '0o17', '999999', '12345678',
           '00', '0XfF']
FLOATS = ['0.0', '0.5', '1.0', '1.5', '2.25', '3.14159', '1e3', '1e16', '1e-7', '2.5e-5', '1E5', '1_0.2_5',
          '123456789.125',
          '0.1', '1e22', '99.995', '1e100', '6.02e23', '1e15', '0.30000000000000004', '2.5', '3.5', '1e2_0']
DIRECTIVES = list('aAwdbBmyYHIpMSfzZjUWcxXGuV%eDFTRhrCgklnt') + ['-d', '-m', '-H', '-I', '-M', '-j', 'P', 's']
TYPE_TESTS = ['defined', 'undefined', 'none', 'boolean', 'true', 'false', 'integer', 'float', 'string', 'mapping',
              'number',
              'sequence', 'iterable', 'callable', 'escaped', 'lower', 'upper']
STR_TESTS = ['isalnum', 'isalpha', 'isascii', 'isdecimal', 'isdigit', 'isidentifier', 'islower', 'isnumeric',
             'isprintable',
             'isspace', 'istitle', 'isupper']
COMPARISONS = ['eq', 'equalto', 'ne', 'lt', 'lessthan', 'le', 'gt', 'greaterthan', 'ge']
SIGNS = ['==', '!=', '<', '<=', '>', '>=']
LOOP = ['index', 'index0', 'revindex', 'revindex0', 'first', 'last', 'length', 'depth', 'depth0', 'previtem',
        'nextitem']

LEAVES = {
    'int': ['<number>', '<number>', '-<number>', 'i', 'j'], 'float': ['<decimal>', '-<decimal>', 'x', 'y'],
    'str': ['<text>', '<text>', '<text>', 's', 't', '<text1> <text1>'],
    'bool': ['true', 'false', 'True', 'False', 'p', 'q'], 'li': ['nums', '[1, 2, 3]', '[]', '[3, -1, 2]', 'nums'],
    'ls': ['words', "['b', 'A', 'a']", 'words', '[<text1>, <text1>]'], 'lx': ['mixed', "[1, 'a', none]", '()',
            "(1, 'x')"],
    'ld': ['users', 'users', "users[:2]", '[users[1]]'],
    'dict': ['d', 'info', "{'a': 1, 'b': 'x'}", '{}', 'users[0]'], 'none': ['none', 'None', 'nil'],
    'undef': ['missing', 'd.nope', "d['nope']", 'nums[99]', 's.nope', '[]|first', 'missing', 'i.x', 'nil.x'],
    'gen': ['nums', 's', 'words', 'd', 'range(3)'],
}
RULES = {
    'str': [
        '<str>|upper', '<str>|lower', '<str>|capitalize', '<str>|title', '<str>|trim', '<str>|trim(<chars>)',
        '<str>|string',
        '<str>|replace(<text1>, <text1>)', '<str>|replace(<text1>, <text1>, <n>)', '<str>|center(<w>)', '<str>|indent',
        '<str>|indent(<k>)', '<str>|indent(<k>, <bool>, <bool>)', '<str>|indent(width=<text1>, first=true)',
        '<str>|indent(blank=true)', '<str>|truncate(<w3>)', '<str>|truncate(<w3>, true, <chars>)',
        "<str>|truncate(length=<w>, leeway=<k>, end='')", '<str>|truncate(<w3>, <bool>, leeway=0)',
        '<str>|default(<str>)',
        '<undef>|default(<str>)', '<undef>|d', "<str>|d('e', true)", '<any>|string', '<str>|reverse',
        '<str>|first|string',
        '<str>|last|string', '<str>|e', '<str>|escape', '<str>|forceescape', '<str>|safe', '<str>|urlencode',
        '<dict>|urlencode',
        '<ls>|join', '<list>|join(<sep>)', "<ld>|join(', ', attribute='name')", '<gen>|join(d=<sep>)',
        '<ls>|join(<any>)',
        "'%s-%s'|format(<any>, <any>)", "'%(a)s'|format(a=<any>)", '<pint>|format(<int>)', '<pfloat> % <float>',
        '<pint> % <int>', '<pstr> % <str>', "'%s %r' % (<any>, <any>)", "'%(k)s|%(v)r' % {'k': <any>, 'v': <any>}",
        "'{}|{}'.format(<any>, <any>)", "'{0} {1} {0}'.format(<any>, <any>)", "'{a}{b!r}'.format(a=<any>, b=<any>)",
        "'{!r:>8}'.format(<str>)", '<fint>.format(<int>)', '<ffloat>.format(<float>)', '<fstr>.format(<str>)',
        "'{0[a]}'.format({'a': <any>})", "'{0[1]}'.format([1, <any>])", "'{a}'.format_map({'a': <any>})",
        "'{:{}}'.format(<str>, <w>)",
        '<str>.upper()', '<str>.lower()', '<str>.capitalize()', '<str>.title()', '<str>.swapcase()', '<str>.casefold()',
        '<str>.strip()', '<str>.strip(<chars>)', '<str>.lstrip(<chars>)', '<str>.rstrip()', '<str>.rstrip(<chars>)',
        '<str>.lstrip()',
        '<str>.replace(<text1>, <text1>)', '<str>.replace(<text1>, <text1>, <n>)', '<str>.zfill(<w>)',
        '<str>.center(<w>)',
        "<str>.center(<w>, '*')", "<str>.ljust(<w>, '.')", '<str>.rjust(<w>)', '<str>.expandtabs()',
        '<str>.expandtabs(<k>)',
        '<str>.removeprefix(<text1>)', '<str>.removesuffix(<text1>)', '<sep>.join(<ls>)', '<str>.join(<str>)',
        '<str>.partition(<text1>)[0]',
        '<str> ~ <any>', '<any> ~ <any>', '<str> + <str>', '<str> * <k>', '<k> * <str>', '<any> ~ <any> ~ <any>',
        '<str> ~ <str>|upper',
        '<str>[<slice>]', '<str>[<slice>]', '<str>[<n>]|string', '<any>|tojson', '<str>|tojson',
        '<dict>|tojson(indent=<k>)',
        '<list>|tojson(<bool>)', '<dict>|tojson(sort_keys=true)', "<list>|tojson(separators=(',', ':'))",
        '<lx>|tojson(none, 2)',
        '<str> if <bool> else <str>', '<any> if <bool>', '<str> or <str>', '<str> and <str>', '<ls>|first', '<ls>|last',
        '<ls>[<n>]',
        'users[0].name', "users[<k>]['city']", 'info.nested.key', "info.get('none', <str>)", '<str>|attr(<any>)|d',
        '<ls>|max', '<ls>|min',
        'strftime_now(<time>)', "<str>.split(<text1>)[0]", "<str>.split(<text1>)[-1]", '<ls>|min(case_sensitive=true)',
        '<list>|map(\'string\')|join(<sep>)', "<ls>|map('upper')|join", '<str>|list|join(<sep>)', '<str>|string|lower',
        '<markup>',
    ],
    'markup': ['<str>|e ~ <str>', '<str>|safe + <str>', '<str>|e|e', '<str>|safe|e', '<str>|e|upper',
               '<str>|e|replace(<text1>, <text1>)',
               "<str>|e|string|length", "<str>|e|forceescape", "'<i >%s</i>'|safe|format(<str>)",
               "('<i >{}</i>'|safe).format(<str>)",
               "', '|safe.join(<ls>)", "[<str>|e, <str>]|join(<sep>)", '<str>|safe * <k>', '(<str>|e)[<slice>]',
               '(<str>|e).split()[0]',
               "'%s' % <str>|e", "('<%s>'|e) % <str>", '<str> + <str>|e', '<str>|e|title', '<str>|e|indent',
               '<str>|e|trim',
               '<str>|e|center(<w>)', '[<str>|e]', '<str>|e|tojson', '<str>|e == <str>', '(<str>|e).upper()',
               '<str>|e|list', '<any>|e'],
    'int': [
        '<int> + <int>', '<int> - <int>', '<int> * <int>', '<int> // <nz>', '<int> % <nz>', '<k> ** <k>', '-<int>',
        '+<int>', '<int>|abs',
        '<str>|length', '<list>|count', '<li>|sum', "<ld>|sum(attribute='age')", "<ld>|map(attribute='age')|sum",
        '<li>|sum(start=<int>)',
        '<li>|first', '<li>|last', '<li>|max', '<li>|min', '<digits>|int', '<float>|int', '<any>|int',
        '<any>|int(<int>)', '<str>|int(base=<base>)',
        "'0x1f'|int(0, 16)", "'ff'|int(<int>, 16)", "'0b11'|int(base=0)", '<str>|wordcount',
        '<int> if <bool> else <int>', '<li>[<n>]',
        'users[<k>].age', "users[-1]['age']", '<str>.find(<text1>)', '<str>.rfind(<text1>)', '<str>.count(<text1>)',
        '<str>.find(<text1>, <n>)',
        '<str>.count(<text1>, <n>, <n>)', '<li>.count(<int>)', '<int>.bit_length()', '<int>.real', '<int> or <int>',
        '<int> and <int>',
        "info.get('x', <int>)", '<bool> + <int>', '<dict>|length', '<int>|round', '<int>|round(<n>)',
        '<int>|default(<int>)', '-<k> ** <k>',
        '<ls>.index(<ls>[0])', "<ld>|map('length')|sum", '(<gen>|list)|length', '<int> + <int> * <int>',
        '(<int> - <int>) % <nz>', 's.index(s[0])'],
    'float': [
        '<int> / <nz>', '<float> + <int>', '<int> - <float>', '<float> * <int>', '-<float>', '<float>|round',
        '<float>|round(<k>)',
        "<float>|round(<n>, 'floor')", "<float>|round(<k>, 'ceil')", '<float>|round(method=\'common\')',
        "<int>|round(<n>, 'ceil')",
        '<digits>|float', '<any>|float', '<any>|float(<float>)', '<float> // <nz>', '<float> % <nz>', '<float>|abs',
        '<k> ** -<k1>', '<float> // <nzf>',
        '<int> % <nzf>', "<ld>|sum(attribute='score')", "<ld>|map(attribute='score')|max", 'users[0].score',
        '<float> ** <k>', '<k> ** 0.5',
        '[<float>, <int>]|sum', '<float> if <bool> else <float>', '<int> / <nz> / <nz>', '[<float>, <float>]|max',
        '<float> / <nzf>', '<float>.real',
        '<int>|float', '<float>|float|string|float'],
    'bool': [
        '<int> < <int>', '<int> <= <float>', '<any> == <any>', '<any> != <any>', '<str> < <str>', '<str> >= <str>',
        '<str> > <str>', '<li> < <li>',
        '<int> < <int> < <int>', '<int> == <int> != <int>', '<int> <= <int> == <bool>', '<text1> in <str>',
        '<text1> not in <str>', '<any> in <list>',
        '<any> not in <list>', '<str> in <dict>', "'a' in <dict>", '<any> in <gen>', 'not <any>', 'not not <any>',
        'not <text1> in <str>', '<bool> and <bool>',
        '<bool> or <bool>', '<any> and <any>', '<any> or <any>', '<any> is <test>', '<any> is not <test>',
        '<any> is <test>', '<undef> is <test>',
        '<int> is odd', '<int> is even', '<int> is not odd', '<int> is divisibleby <nz>', '<int> is divisibleby(<nz>)',
        '<any> is in <list>',
        '<any> is in(<list>)', '<any> is sameas none', '<bool> is sameas true', '<int> is <compare> <int>',
        '<any> is <equal>(<any>)', "<name> is filter",
        "<name> is test", '<str>.startswith(<text1>)', "<str>.startswith(('a', <text1>))", '<str>.endswith(<text1>)',
        '<str>.startswith(<text1>, <n>)',
        '<str>.<strtest>()', '<str>.<strtest>()', '<bool> == <bool>', 'users[0].active', '<bool> if <bool> else <bool>',
        '<list> == <list>', '<dict> == <dict>',
        'not <any> is <test>', '<bool> and not <bool> or <bool>', '<int> + <int> == <int>', '<str> ~ <str> == <str>',
        '<int> is eq <int>', '<float>.is_integer()',
        '<any> is string or <any> is number', '<int> > <int> and <int> < <int>', '<none> is none',
        '<any> is defined and <any>', '(<gen>) is iterable'],
    'li': [
        '[<int>, <int>]', '[<int>]', 'range(<k>)|list', 'range(<n>, <w>, <step>)|list', '<li> + <li>', '<li>[<slice>]',
        '<li>|sort', '<li>|sort(reverse=true)',
        '<li>|sort(true)', '<li>|unique|list', '<li>|reverse|list', "<li>|select('odd')|list",
        "<li>|reject('divisibleby', 3)|list", "<li>|map('abs')|list",
        "<ls>|map('length')|list", "<ld>|map(attribute='age')|list", '<li> * <k>', "<li>|select('<sign>', <int>)|list",
        '<li>|list', "<li>|select|list",
        '<li>|reject|list', "<li>|map('round', <n>)|list", '<li>.copy()', '<li>|select(\'in\', <li>)|list',
        '<li>|map(\'default\', <int>)|list',
        'range(<k>)[<slice>]|list', '<ls>|map(\'int\', <int>)|list', "<li>|map('int')|list", '<li>[::-1]'],
    'ls': [
        '[<str>, <str>]', '[<str>]', '<str>.split()', '<str>.split(<text1>)', '<str>.split(<text1>, <n>)',
        '<str>.split(maxsplit=<k>)', '<str>.split(none, <k>)',
        '<str>.rsplit(<text1>, <k>)', '<str>.rsplit()', '<str>.splitlines()', '<str>.splitlines(true)', '<str>|list',
        '<ls>|sort', '<ls>|sort(case_sensitive=true)',
        '<ls>|sort(false, true)', '<ls>|unique|list', '<ls>|unique(true)|list', "<ls>|map('upper')|list",
        "<ls>|map('replace', 'a', 'b')|list",
        "<ls>|select('in', <ls>)|list", "<li>|map('string')|list", "<ld>|map(attribute='city')|list", '<dict>|list',
        '<ls>[<slice>]', '<ls> + <ls>',
        "<ls>|reject('equalto', 'a')|list", "<ls>|map('trim')|list", "<ls>|map('e')|list", '<ls>|reverse|list',
        "<ls>|select('string')|list",
        "<ld>|map(attribute='name', default='?')|list", "<ls>|map('truncate', 3, true, '')|list",
        "<ls>|map('tojson')|list", '<ls> * <k>', '<dict>.keys()|list'],
    'lx': [
        '[<any>, <any>]', '[<dict>, <dict>]', '[<any>]', '(<any>, <any>)', '(<any>,)', '[<any>, <any>, <any>]',
        '<dict>.items()|list', '<dict>|items|list', "{'b': <int>, 'A': <int>}|dictsort",
        "{'b': <int>, 'a': <int>}|dictsort(false, 'value')", "{'b': <int>, 'B': <int>}|dictsort(true)",
        "{'b': <int>, 'a': <int>}|dictsort(by='value', reverse=true)",
        '<list>|batch(<k1>)|list', '<list>|batch(<k1>, <any>)|list', '<list>|slice(<k1>)|list',
        '<list>|slice(<k1>, <any>)|list', "<ld>|groupby('city')|list",
        "<ld>|groupby('gone', default='z')|list", "<ld>|groupby('age', case_sensitive=true)|map('first')|list",
        '<dict>.values()|list', '<str>.partition(<text1>)',
        '<str>.rpartition(<text1>)', "<ls>|map('list')|list", "<ls>|map('first')|list", '<list> + <list>',
        '<lx>[<slice>]', '<lx>|reverse|list', '<lx>|select|list',
        "<lx>|select('string')|list", "<lx>|reject('none')|list", '<lx>|map(\'string\')|list', '<lx>|unique|list',
        "<ld>|map(attribute='tags')|list", 'users[0].tags',
        "<ld>|map(attribute='addr.zip')|list", "<lx>|map('tojson')|list",
        "<ld>|groupby('city')|map(attribute='grouper')|list", '(<any>, <any>) + (<any>,)', '<lx> * <k>',
        "<ld>|map(attribute='tags.0')|list", "<lx>|map('default', 'x', true)|list", '[<undef>]',
        "<lx>|select('number')|map('float')|list"],
    'ld': [
        "<ld>|selectattr('active')|list", "<ld>|rejectattr('active')|list",
        "<ld>|selectattr('age', '<sign>', <int>)|list", "<ld>|selectattr('city', 'equalto', 'B')|list",
        "<ld>|sort(attribute='age')", "<ld>|sort(attribute='city,name', reverse=true)", '[users[<k>], users[<k>]]',
        "<ld>|unique(attribute='city')|list", '<ld>[<slice>]',
        "<ld>|rejectattr('name', 'in', <ls>)|list", "<ld>|selectattr('gone', 'undefined')|list", '<ld>|reverse|list',
        "<ld>|selectattr('addr.zip', 'odd')|list",
        "<ld>|sort(false, true, 'name')", '<ld> + <ld>'],
    'dict': [
        "{'a': <any>, 'b': <any>}", '{<text>: <any>}', '{<int>: <any>, <text>: <any>}', 'dict(a=<any>)',
        'dict(<dict>, b=<any>)', "dict([('a', <any>)])", 'users[<k>]',
        '<ld>|first', '<ld>|last', "<ld>|max(attribute='age')", "<ld>|min(attribute='name')", '<dict>.copy()', '{}',
        "dict(<dict>|items)", '<dict> if <bool> else <dict>',
        'info.nested', "dict({'a': <any>}, **{'b': <any>})", '{(1, 2): <any>}',
        '{true: <any>, none: <any>, 1.5: <any>}', "info['nested']", "dict(<li>|map('string')|batch(2, '-'))"],
    'none': ["info.get('nope')", '<any>|default(none)|string|int and none', 'none'], 'undef': ["<dict>['nope']",
            '<dict>.nope', '<str>.nope', '<li>[99]', '<any> if false', '[]|max'],
    'gen': ["<li>|map('string')", '<list>|select', '<dict>.items()', '<dict>|items', '<li>|batch(2)', '<list>|reverse',
            '<ls>|unique', 'range(<k>)', "<ld>|map(attribute='age')",
            "<ld>|selectattr('active')", '<list>', '<str>', '<dict>', '<li>|slice(2)',
            "<ls>|map('upper')|reject('in', ['A'])", '<dict>.values()', '<dict>.keys()'],
}
KINDS = {'int': 20, 'float': 10, 'str': 30, 'bool': 12, 'li': 6, 'ls': 6, 'lx': 10, 'ld': 3, 'dict': 8, 'none': 2,
         'undef': 2, 'markup': 2}
ANY_FILTER = ['abs', 'batch', 'capitalize', 'center', 'count', 'd', 'default', 'dictsort', 'e', 'escape', 'first',
              'float', 'forceescape', 'format', 'groupby',
              'indent', 'int', 'items', 'join', 'last', 'length', 'list', 'lower', 'map', 'max', 'min', 'reject',
              'rejectattr', 'replace', 'reverse', 'round',
              'safe', 'select', 'selectattr', 'slice', 'sort', 'string', 'sum', 'title', 'tojson', 'trim', 'truncate',
              'unique', 'upper', 'urlencode', 'wordcount',
              'attr']
ANY_TEST = [*TYPE_TESTS, *COMPARISONS, 'odd', 'even', 'divisibleby', 'in', 'filter', 'test']
LAZY = ('batch', 'slice', 'map', 'select', 'reject', 'selectattr', 'rejectattr', 'unique', 'reverse', 'items')
ANY_METHOD = ['upper', 'split', 'rsplit', 'join', 'strip', 'replace', 'startswith', 'zfill', 'center', 'partition',
              'items', 'keys', 'values', 'get', 'count', 'index',
              'find', 'title', 'append', 'pop', 'update', 'insert', 'sort', 'clear', 'setdefault', 'extend', 'remove',
              'reverse', 'popitem', 'format', 'copy', 'nope',
              '__class__', '_x', 'islower', 'expandtabs', 'splitlines', 'ljust', 'removeprefix', 'bit_length',
              'is_integer']


def quoted(rng, text):
    """Returns a string literal; quotes and backslashes are escaped, some line breaks stay as they are."""
    quote = rng.choice('\'\'"')
    text = text.replace('\\', '\\\\').replace(quote, '\\' + quote)
    if rng.random() < 0.8:
        text = text.replace('\n', '\\n')
    if rng.random() < 0.1:
        text += rng.choice(ESCAPES)
    return quote + text + quote


def percent(rng, conversions):
    flags = ''.join(flag for flag in '-+ 0#' if rng.random() < 0.15)
    width = rng.choice(['', '', '5', '8', '1'])
    return f"'%{flags}{width}{rng.choice(['', '', '.0', '.2', '.5'])}{rng.choice(conversions)}'"


def braces(rng, conversions, precision=True):
    spec = rng.choice(['', '<', '>', '^', '*^', '=', '0<']) + rng.choice(['', '', '+', '-', ' ']) * (conversions != 's')
    spec += rng.choice(['', '#']) * (conversions != 's') + rng.choice(['', '', '0']) + rng.choice(['', '5', '12'])
    spec += rng.choice(['', '', ',', '_']) * (conversions != 's') + (rng.choice(['', '.0', '.3']) if precision else '')
    return "'{:" + spec + rng.choice(['', *conversions]) + "}'"


TERMINALS = {
    'number': lambda r: r.choice(NUMBERS) if r.random() < 0.3 else str(r.randint(0, 12)),
    'decimal': lambda r: r.choice(FLOATS),
    'text': lambda r: quoted(r, ''.join(r.choice(PIECES) for _ in range(r.choice([0, 1, 2, 2, 3])))),
    'text1': lambda r: quoted(r, r.choice(PIECES)), 'chars': lambda r: quoted(r, ''.join(r.sample(PIECES, 2))[:3]),
    'sep': lambda r: r.choice(["', '", "'-'", "''", "'|'", "'<'", '", "']), 'n': lambda r: str(r.randint(-3, 4)),
    'k': lambda r: str(r.randint(0, 3)), 'k1': lambda r: str(r.randint(1, 4)), 'w': lambda r: str(r.randint(0, 14)),
    'w3': lambda r: str(r.randint(3, 14)), 'step': lambda r: r.choice(['1', '2', '3', '-1']),
    'nz': lambda r: r.choice(['1', '2', '3', '7', '-2', '-3', '10']),
    'nzf': lambda r: r.choice(['0.5', '1.5', '-0.25', '3.0', '0.1', '1e3']), 'test': lambda r: r.choice(TYPE_TESTS),
    'strtest': lambda r: r.choice(STR_TESTS), 'compare': lambda r: r.choice(COMPARISONS),
    'sign': lambda r: r.choice(SIGNS + COMPARISONS), 'equal': lambda r: r.choice(['eq', 'equalto', 'ne']),
    'base': lambda r: r.choice(['10', '2', '8', '16', '36', '0']), 'digits': lambda r: quoted(r,
            r.choice(['12', ' 7 ', '-3', '1_000', '4.7', '1e3', '٣', '+5', '0x1f', '.5'])),
    'name': lambda r: f"'{r.choice([*ANY_FILTER, *ANY_TEST, 'nosuch'])}'", 'time': lambda r: quoted(r,
            ' '.join('%' + r.choice(DIRECTIVES) for _ in range(r.randint(1, 3)))),
    'slice': lambda r: ':'.join([r.choice(['', '', str(r.randint(-4, 4))]), r.choice(['', '', str(r.randint(-4, 5)),
            'none'])] + r.choice([[], [], ['', ], ['-1'], ['2'], ['-2']])),
    'pint': lambda r: percent(r, 'dixXoscr'), 'pfloat': lambda r: percent(r, 'fegGEFsrd'), 'pstr': lambda r: percent(r,
            'srs'),
    'fint': lambda r: braces(r, 'dxobXeg', False), 'ffloat': lambda r: braces(r, 'feg%GE'), 'fstr': lambda r: braces(r,
            's'),
}
PLACE = re.compile(r'<([a-z]+\d?)>')
SIMPLE = re.compile(r'''[\w.]+|'[^'\\]*'|"[^"\\]*"|\[[^\[\]()]*\]|\w+\[[^\[\]]*\]|\{[^{}]*\}|\w+\([^()]*\)''')


def make_context(rng):
    def text():
        return ''.join(rng.choice(PIECES) for _ in range(rng.choice([0, 1, 2, 3])))

    def user(at):
        return {'name': rng.choice(['Ann', 'bob', 'Cid', 'dora', 'Éve']), 'age': rng.randint(0, 9) * 7,
                'city': rng.choice('ABab'), 'active': rng.random() < 0.6,
                'score': rng.choice([0.5, 1.25, -2.0, 1e-7, 3]), 'tags': [text() for _ in range(at % 3)],
                'addr': {'zip': rng.randint(10, 99)}}
    some = [None, True, False, 0, 1, -5, 2.5, 1e20, '', 'a', [1, [2]], [], {}, {'k': None}]
    return {
        'i': rng.randint(-9, 20), 'j': rng.choice([0, 1, 2, 1000, -7, 123456]), 'x': rng.choice([0.1, -2.5, 1e16, 3.0,
                -0.0, 1e-5, 0.5]), 'y': rng.uniform(-9, 9),
        's': text() or 'abc', 't': rng.choice(['Hello World', 'a-b-c', '  pad ', 'línea\nnext', text()]),
        'p': rng.random() < 0.5, 'q': rng.random() < 0.5, 'nil': None,
        'nums': [rng.randint(-5, 9) for _ in range(rng.randint(1, 5))],
        'words': [rng.choice(PIECES) for _ in range(rng.randint(1, 4))],
        'mixed': [rng.choice(some) for _ in range(rng.randint(0, 4))], 'users': [user(at) for at in range(rng.randint(4,
                5))],
        'd': {key: rng.choice(some) for key in rng.sample(['a', 'b', 'B', 'k', 'é', '', 'items', 'x y'], rng.randint(0,
                3))},
        'info': {'nested': {'key': text(), 'deep': {'er': rng.randint(0, 9)}}, 'x': rng.randint(0, 9), 'list': [1, 2]},
        'tree': [{'v': 1, 'kids': [{'v': 2, 'kids': []}, {'v': 3, 'kids': [{'v': 4, 'kids': []}]}]},
                 {'v': 5, 'kids': []}],
    }


def mentioned(context, template):
    return {name: value for name, value in context.items() if re.search(rf'\b{name}\b', template)}


class Writer:
    """Writes one program. `names`: the variables it has set, by kind; `wrong`: the chance of a value of another
    kind."""

    def __init__(self, rng, wrong):
        self.rng, self.wrong = rng, wrong
        self.names, self.loops, self.macros, self.count = [], 0, [], 0

    def expr(self, kind, depth=2):
        rng = self.rng
        if kind == 'any' or rng.random() < self.wrong:
            kind = rng.choices(list(KINDS), KINDS.values())[0]
        if kind == 'list':
            kind = rng.choice(['li', 'ls', 'lx', 'lx', 'ld'])
        if kind in TERMINALS:
            return TERMINALS[kind](rng)
        known = [name for name, its in self.names if its == kind]
        if known and rng.random() < 0.3:
            return rng.choice(known)
        if self.loops and kind in ('int', 'bool') and rng.random() < 0.2:
            return rng.choice({'int': ['loop.index', 'loop.index0', 'loop.revindex', 'loop.length'],
                               'bool': ['loop.first', 'loop.last']}[kind])
        rules = RULES if kind == 'markup' or (depth > 0 and rng.random() < 0.8) else LEAVES
        return self.fill(rng.choice(rules[kind]), depth - 1)

    def fill(self, rule, depth):
        """Returns the rule with an expression for every <kind>, mostly in parentheses unless it is simple."""
        def one(match):
            made = self.expr(match[1], depth)
            after = rule[match.end():match.end() + 1]
            bare = match[1] in TERMINALS or rule == match[0] or SIMPLE.fullmatch(made)
            inside = rule[max(0, match.start() - 1)] in '([' and after in (',', ')', ']')
            chance = 0.9 if inside else 0.0 if after in ('.', '[') else 0.1
            return made if bare or self.rng.random() < chance else f'({made})'
        return PLACE.sub(one, rule)

    def tag(self, body):
        rng = self.rng
        left, right = (rng.choices(['', '-', '+'], [8, 2, 1])[0] for _ in range(2))
        return f'{{%{left}{rng.choice([" ", " ", " ", ""])}{body}{rng.choice([" ", " ", " ", chr(10)])}{right}%}}'

    def shown(self, text):
        rng = self.rng
        left, right = (rng.choices(['', '-'], [8, 1])[0] for _ in range(2))
        space = rng.choice([' ', ' ', ' ', '']) if not text.startswith(('-', '+')) else ' '
        return f'{{{{{left}{space}{text}{space or " " * text.endswith("}")}{right}}}}}'

    def show(self, depth=2):
        kind = self.rng.random()
        text = self.expr('any', depth)
        if kind < 0.1:
            text = f'[{text}]'
        elif kind < 0.14:
            text = f'({text})|tojson'
        return self.shown(text)

    def literal(self):
        return self.rng.choice(['x', ' ', 'text', '  two', '.', '\t', ' é ', '} %', '# no', '\n', 'a\nb'])

    def fresh(self):
        self.count += 1
        return 'v' + self.rng.choice(['', 'w']) + str(self.count)

    def body(self, depth, count=None):
        """Returns lines of statements; variables set inside are not known outside."""
        before = list(self.names)
        lines = [line for _ in range(count or self.rng.choice([1, 1, 2])) for line in self.statement(depth)]
        self.names = before
        return lines

    def statement(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.4:
            return [rng.choice(['', '', '  ', self.literal()]) + self.show() + rng.choice(['', '', self.literal()])]
        makers = [self.for_, self.for_, self.if_, self.if_, self.set_, self.set_, self.set_, self.macro, self.call,
                  self.filter_, self.with_, self.namespace, self.helper, self.other, self.recursive, self.twice]
        return rng.choice(makers)(depth - 1)

    def for_(self, depth):
        rng = self.rng
        target, kind, source = rng.choice([('n', 'int', 'li'), ('w', 'str', 'ls'), ('u', 'dict', 'ld'),
                                           ('v', 'undefined', 'gen'), ('k, v', '', 'pairs'), ('v', '', 'lx')])
        pairs = ['d.items()', 'd|items', 'd|dictsort', "[('a', 1), ('b', 2)]", 'info.items()', "users|groupby('city')"]
        text = rng.choice(pairs) if source == 'pairs' else self.expr(source, 1)
        test = f' if {self.expr("bool", 1)}' if rng.random() < 0.2 else ''
        if ' if ' in text:
            text = f'({text})'
        names, self.loops = list(self.names), self.loops + 1
        self.names.append((target, kind))
        inner = [self.shown(rng.choice([target.split(', ')[-1], f'loop.{rng.choice(LOOP)}', "loop.cycle('a', 'b')",
                                        f'loop.changed({target})', f'[{target}]']))]
        inner += self.body(depth)
        if rng.random() < 0.2:
            leave = self.tag(rng.choice(['break', 'continue']))
            inner.insert(rng.randrange(2), self.tag(f'if {self.expr("bool", 1)}') + leave + self.tag('endif'))
        self.names, self.loops = names, self.loops - 1
        other = [self.tag('else'), *self.body(depth, 1)] if rng.random() < 0.2 else []
        return [self.tag(f'for {target} in {text}{test}'), *inner, *other, self.tag('endfor')]

    def if_(self, depth):
        rng = self.rng
        lines = [self.tag(f'if {self.expr(rng.choice(["bool", "bool", "any"]))}'), *self.body(depth)]
        for _ in range(rng.choice([0, 0, 1])):
            lines += [self.tag(f'elif {self.expr("bool")}'), *self.body(depth, 1)]
        if rng.random() < 0.5:
            lines += [self.tag('else'), *self.body(depth, 1)]
        return [*lines, self.tag('endif')]

    def set_(self, depth):
        rng, name, style = self.rng, self.fresh(), self.rng.random()
        kind = rng.choice(['int', 'str', 'str', 'bool', 'li', 'ls', 'dict', 'float', 'lx'])
        if style < 0.15:
            self.names.append((name, 'str'))
            filters = rng.choice(['', '|upper', '|trim|title', '|indent(2)'])
            return [self.tag(f'set {name}{filters}'), *self.body(depth, 1), self.tag('endset'), self.shown(name)]
        if style < 0.25:
            return [self.tag(f'set {name}, o = {self.expr("any", 1)}, {self.expr("any", 1)}'),
                    self.shown(f'{name} ~ o')]
        text = self.expr(kind)
        self.names.append((name, kind))
        return [self.tag(f'set {name} = {text}'), *([self.shown(name)] if rng.random() < 0.6 else [])]

    def macro(self, depth):
        rng, name = self.rng, self.rng.choice('fgh')
        default = self.expr('any', 1)
        args = rng.choice(['a', 'a, b', f'a, b={default}', f'a={default}', '', f'a, b={default}, c=a'])
        names, loops = list(self.names), self.loops
        self.loops = 0
        inner = [self.shown(rng.choice(['a', 'b', 'varargs', 'kwargs', '[a, b]', 'a ~ b', 'varargs|length',
                                        "kwargs.get('z')", 'caller is defined', 'a is defined', 'c', 'caller()']))
                 if rng.random() < 0.8 else 'text'] + self.body(depth, 1)
        self.names, self.loops = names, loops
        call = rng.choice([f'{name}()', f'{name}({self.expr("any", 1)})',
                           f'{name}({self.expr("any", 1)}, {self.expr("any", 1)})', f'{name}(a={self.expr("any", 1)})',
                           f'{name}(1, z=2)', f'{name}(*[1])', f"{name}(**{{'a': 3}})", f'{name}(1, 2, 3, 4)',
                           f'{name}()', f'{name}.name', f'{name}.arguments', f'[{name}(1)]|length'])
        return [self.tag(f'macro {name}({args})'), *inner, self.tag('endmacro'), self.shown(call)]

    def call(self, depth):
        rng, name = self.rng, self.rng.choice('fgh')
        args, given = rng.choice([('', ''), ('(m)', self.expr('any', 1)), ('(m, o=2)', '1'), ('(m)', ''), ('', '1')])
        inner = '<' + self.shown(f'caller({given})') + '|' + self.shown('a')
        inner = self.tag(f'macro {name}(a=1)') + inner + self.tag('endmacro')
        body = ([self.shown('m')] if args else []) + self.body(depth, 1)
        return [inner, self.tag(f'call{args} {name}({self.expr("any", 1) if rng.random() < 0.5 else ""})'), *body,
                self.tag('endcall')]

    def filter_(self, depth):
        name = self.rng.choice(['upper', 'trim', "replace('a', 'b')", 'indent(2, true)', 'title', 'e',
                                'lower|capitalize', 'length', "center(20)", 'tojson'])
        return [self.tag(f'filter {name}'), *self.body(depth, 1), self.tag('endfilter')]

    def with_(self, depth):
        names = list(self.names)
        kind, name = self.rng.choice(['int', 'str', 'lx']), self.fresh()
        first = f'with {name} = {self.expr(kind)}' + self.rng.choice(['', f', o = {name}', ', o = 1'])
        self.names.append((name, kind))
        lines = [self.tag(first), self.shown(name), *self.body(depth, 1), self.tag('endwith')]
        self.names = names
        return lines

    def namespace(self, depth):
        start, change = self.expr('any', 1), self.rng.choice(['ns.a ~ 1', 'ns.n + n', 'ns.n + 1', '[ns.n]', 'n'])
        target = self.rng.choice(['ns.n', 'ns.n', 'ns.a'])
        return [self.tag(f'set ns = namespace(n=0, a={start})'),
                self.tag('for n in nums') + self.tag(f'set {target} = {change}') + self.tag('endfor'),
                self.shown('ns.n') + self.shown('ns.a'), *([self.show()] if depth else [])]

    def helper(self, _depth):
        rng = self.rng
        made = rng.choice([
            ["{% set c = cycler('a', 1, none) %}",
             '{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.current }}'],
            ["{% set c = joiner() %}", "{% for n in nums %}{{ c() }}{{ n }}{% endfor %}"],
            ["{% set c = joiner('|') %}", '{{ c() }}{{ c() }}{{ c() }}'],
            ["{% set c = cycler(*nums) %}", '{% for n in words %}{{ c.next() }}{% endfor %}'],
            [f'{{% if {self.expr("bool")} %}}{{{{ raise_exception({self.expr("str", 1)}) }}}}{{% endif %}}'],
            [f'{{{{ strftime_now({self.expr("time")}) }}}}']])
        return made

    def other(self, depth):
        rng = self.rng
        return rng.choice([
            [rng.choice(['{% raw %}', '{%- raw -%}', '{%+raw%}']), '{{ not }} {% code %} {# here #}',
             self.tag('endraw')],
            ['{#' + rng.choice(['', '-', '+']) + ' comment {{ x }} ' + rng.choice(['', '-', '+']) + '#}'],
            [self.tag('generation'), *self.body(depth, 1), self.tag('endgeneration')], ['{#- a', ' b -#}', self.show()],
            ['  {# c #}  ', self.show()]])

    def recursive(self, _depth):
        rng = self.rng
        mark = rng.choice(['loop.depth', 'loop.index', 'loop.length', 'loop.last', 'loop.depth0', 'n.v',
                           'loop.previtem is defined', 'loop.changed(n.v)'])
        return [self.tag('for n in tree recursive'), self.shown('n.v') + self.shown(mark),
                self.tag('if n.kids') + '(' + self.shown('loop(n.kids)') + ')' + self.tag('endif'),
                *([self.tag('else'), 'none'] if rng.random() < 0.3 else []), self.tag('endfor')]

    def twice(self, _depth):
        name, text = self.fresh(), self.expr('gen', 1)
        return [self.tag(f'set {name} = {text}'), self.shown(f'{name}|list') + self.shown(f'{name}|list'),
                self.tag(f'for g in {name}') + '.' + self.tag('endfor')]


class Scopes(Writer):
    """Programs that set and read few names in nested scopes, regardless of kinds."""

    def show(self, depth=2):
        name = self.rng.choice('abc')
        text = self.rng.choice([name, name, f'{name} is defined', f"{name}|d('-')", f'{name} ~ "!"',
                                f'[{name}]|length'])
        return self.rng.choice(['', '', ' ']) + '{{ ' + text + ' }}'

    def value(self):
        return self.rng.choice(['1', '2', "'s'", 'a', 'b', 'c', 'a ~ 1', 'b ~ c', '[a, b]|length', 'a|d(5)',
                                "'q' if p else a", 'none'])

    def statement(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.35:
            return [self.show()]
        name, other, more = rng.choice('abc'), rng.choice('abc'), self.body
        kind = rng.randrange(13)
        if kind < 4:
            return [self.tag(f'set {name} = {self.value()}')]
        if kind == 4:
            test = rng.choice(['p', 'not p', 'a', 'b is defined', 'true', 'false', 'loop is defined'])
            return [self.tag(f'if {test}'), *more(depth - 1),
                    *([self.tag('else'), *more(depth - 1)] if rng.random() < 0.5 else []), self.tag('endif')]
        if kind < 7:
            source = rng.choice(['nums', '[1, 2]', "'xy'", '[]', name, f'[{other}]', 'range(2)'])
            test = rng.choice(['', '', f' if {name}', f' if {other} is defined', ' if loop is defined'])
            show = rng.choice([[], ['{{ loop.index }}'], ['{{ loop.length }}'], ['{{ loop.last }}']])
            return [self.tag(f'for {name} in {source}{test}'), *show, *more(depth - 1),
                    *([self.tag('else'), *more(depth - 1)] if rng.random() < 0.3 else []), self.tag('endfor')]
        if kind == 7:
            value = self.value()
            sets = rng.choice(['', f' {name} = {value}', f' {name} = {value}, {other} = {name}'])
            return [self.tag(f'with{sets}'), *more(depth - 1), self.tag('endwith')]
        if kind == 8:
            args = rng.choice(['', 'a', 'b=a', 'a, b=a', 'c=1'])
            return [self.tag(f'macro m({args})'), *more(depth - 1), self.tag('endmacro'), *more(0), '{{ m() }}',
                    *more(0), *(['{{ m(7) }}'] if args else [])]
        if kind == 9:
            return [self.tag(f'set {name}'), *more(depth - 1), self.tag('endset')]
        if kind == 10:
            return ['{% macro k() %}' + self.show() + '{{ caller(8) }}{% endmacro %}', self.tag(f'call({name}) k()'),
                    *more(depth - 1), self.tag('endcall')]
        if kind == 11:
            return [self.tag('filter upper'), *more(depth - 1), self.tag('endfilter')]
        return [self.tag(f'set ns = namespace({name}=1)'), self.tag(f'set ns.{name} = {self.value()}'),
                f'{{{{ ns.{name} }}}}']

    def body(self, depth, count=None):
        return [line for _ in range(count or self.rng.choice([1, 2, 2, 3])) for line in self.statement(depth)]


def white_space(rng):
    """Returns text, comments, raw blocks and empty tags with every white-space control."""
    writer, parts = Scopes(rng, 0), []
    for _ in range(rng.randint(2, 7)):
        left, right = rng.choice(['', '', '-', '+']), rng.choice(['', '', '-', '+'])
        parts.append(rng.choice([' ', '  ', '\t', '\n', '\n\n', ' \n ', '\n  ', 'x', 'é', '\r\n', ' \t', 'a\n', '\n\tb',
                                 '\u00a0', '\x0b', '\u2028', '\r', '}}', '%}', '-', '#}']))
        parts.append(rng.choice([
            f'{{%{left} if true {right}%}}{rng.choice(["", " ", chr(10), "y "])}{{%{left} endif {right}%}}',
            f'{{#{left} c {right}#}}', '{{' + left.replace('+', '') + " 'v' " + right.replace('+', '') + '}}',
            f'{{%{left} raw {right.replace("+", "")}%}} {{{{ r }}}} \n {{%{right} endraw {left}%}}',
            f'{{%{left} set a = 1 {right}%}}', f'{{%{left} for n in [1, 2] {right}%}} n\n {{%{right} endfor {left}%}}',
            f'{{#{left}{right}#}}', "{{ 'q\n' }}", f'{{%{left}set a%}} z {{%endset{right}%}}', writer.show(),
            '{#\n two\n#}']))
    return ''.join(parts) + rng.choice(['', '\n', '\n\n', ' \n', '\r\n', ' '])


def careless(rng):
    """Applies any filter, test or method to anything, with any arguments."""
    writer = Writer(rng, 0)
    args = [writer.expr('any', 0) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
    if args and rng.random() < 0.2:
        args[-1] = rng.choice(['attribute', 'default', 'reverse', 'case_sensitive', 'width', 'base', 'nope', 'boolean',
                               'start']) + '=' + args[-1]
    text, given = writer.fill('<any>', 1), f'({", ".join(args)})' if args else ''
    text = f'({text})'
    kind = rng.random()
    if kind < 0.5:
        name = rng.choice(ANY_FILTER)
        return '{{ ' + text + f'|{name}{given}' + ('|list' if name in LAZY else '') + ' }}'
    if kind < 0.75:
        given = given if len(args) != 1 or '=' in given else ' ' + given
        return '{{ ' + text + f' is {rng.choice(ANY_TEST[:-4] if not args else ANY_TEST)}{given}' + ' }}'
    return '{{ ' + text + f'.{rng.choice(ANY_METHOD)}({", ".join(args)})' + '|string }}'


def broken(rng, text):
    """Returns the program with one thing removed, doubled or inserted."""
    at = rng.randrange(len(text) + 1)
    kind = rng.random()
    if kind < 0.4:
        return text[:at] + text[at + rng.choice([1, 1, 2, 5]):]
    if kind < 0.8:
        return text[:at] + rng.choice(['{{', '}}', '{%', '%}', '(', ')', "'", '|', ' is ', ' not ', '-', '.', ',', '{#',
                                       ' if ', ' else ', '[', ':', '1', '=', '%']) + text[at:]
    return text[:at] + text[max(0, at - 6):]


def one(rng):
    kind = rng.random()
    wrong = rng.choice([0, 0, 0, 0, 0.03])
    if kind < 0.37:
        writer = Writer(rng, wrong)
        text = '\n'.join(writer.show(rng.choice([1, 2, 2, 3])) for _ in range(rng.choice([1, 1, 2])))
    elif kind < 0.69:
        text = '\n'.join(Writer(rng, wrong).body(rng.choice([1, 2, 2, 3]), rng.choice([1, 1, 2, 3])))
    elif kind < 0.84:
        text = rng.choice(['', '\n']).join(Scopes(rng, 0).body(3, rng.choice([2, 3, 4])))
    elif kind < 0.92:
        text = white_space(rng)
    else:
        text = careless(rng)
    if rng.random() < 0.04:
        text = broken(rng, text)
    if rng.random() < 0.03:
        text = text.replace('\n', '\r\n')
    return text


def programs(seed, count):
    """Yields `count` pairs (template, context)."""
    for number in range(count):
        rng = random.Random(f'{seed} {number}')
        text = one(rng)
        context = make_context(rng)
        if rng.random() < 0.3:
            context.update({'a': 'A0', 'b': 0})
        yield text, mentioned(context, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=10)
    args = parser.parse_args()
    for template, context in programs(args.seed, args.count):
        print(json.dumps({'template': template, 'context': context}))
    return 0


if __name__ == '__main__':
    sys.exit(main())
