"""Random Jinja programs, the same for the same seed, and small ones by hand, one for each known trap.

usage: jinja_programs.py [--seed N] [--count N] [--edge]          one JSON object a line, {"template", "context"}

As a module: programs(seed, count) yields (template, context), EDGE_CASES is a list of the same. Most random programs
have the right types, so that about four of five render; contexts contain only the names that the template mentions.
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


SHARED = {
    'a': 'outer', 'n': 5, 'x': 7, 'f': 2.5, 's': 'Hello World', 'e': '', 'nil': None, 'yes': True, 'no': False,
    'l': [3, 1, 2],
    'w': ['b', 'A', 'a', 'B'], 'd': {'b': 1, 'A': 2, 'c': None}, 'html': '<b class="x">\'&\'</b>', 'm': [1, 'a', None,
            2.0, True, [1]],
    'users': [{'name': 'bob', 'age': 3, 'tags': ['x', 'y'], 'addr': {'city': 'Rome'}}, {'name': 'Ann', 'age': 5,
            'tags': [], 'addr': {'city': 'oslo'}},
              {'name': 'Cid', 'age': 3, 'tags': ['z'], 'addr': {}}, {'name': 'dot', 'addr': {'city': 'Rome'},
                      'tags': ['x']}],
    'shadow': {'items': 'I', 'keys': 'K', 'get': 'G', 'name': 'N', '0': 'zero', 'a.b': 'dotted', 'count': 9},
    'text': 'one two\n\n  three\tfour\r\nfive six seven', 'uni': 'Straße Ünïcödé ΑΣ ǆ İ ﬁ e\u0301 😀',
    'ctl': '\x00\x1b\x7f\xa0\u200b\u2028\ud7ff\u0378\ufeff',
}
EDGE_SCOPES = [
    '{% set a = 1 %}{{ a }}', '{% if yes %}{% set a = 1 %}{% endif %}{{ a }}',
    '{% if no %}{% set a = 1 %}{% endif %}{{ a }}', '{% if no %}{% set q = 1 %}{% endif %}[{{ q }}]{{ q is defined }}',
    '{% for i in l %}{% set a = i %}{% endfor %}{{ a }}',
    '{% for i in l %}{{ a }}{% set a = i %}{{ a }}{% endfor %}{{ a }}', '{% for a in l %}{{ a }}{% endfor %}{{ a }}',
    '{% set k = 0 %}{% for i in l %}{% set k = k + i %}{{ k }},{% endfor %}{{ k }}',
    '{% for i in l %}{% if i == 1 %}{% set z = "one" %}{% endif %}[{{ z }}]{% endfor %}',
    '{% set ns = namespace(k=0) %}{% for i in l %}{% set ns.k = ns.k + i %}{% endfor %}{{ ns.k }}',
    '{% set ns = namespace() %}{{ ns.nope }}|{{ ns.nope is defined }}',
    '{% set ns = namespace({"p": 1}, q=2) %}{{ ns.p }}{{ ns.q }}{{ ns["p"] }}',
    '{% set ns = namespace(a=1) %}{% set ns["a"] = 2 %}{{ ns.a }}', '{% set d.b = 2 %}{{ d }}', '{% set nope.b = 2 %}',
    '{% set ns = namespace(a=1) %}{{ ns }}', '{% set ns = namespace() %}{% set ns.items = 3 %}{{ ns.items }}',
    '{% macro f() %}{{ later }}{% endmacro %}{% set later = 5 %}{{ f() }}',
    '{% macro f() %}{{ a }}{% endmacro %}{% set a = 5 %}{{ f() }}',
    '{% macro f() %}{% set a = 6 %}{{ a }}{% endmacro %}{{ f() }}{{ a }}',
    '{% for i in l %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}',
    '{% for i in l %}{% macro f() %}{{ loop.index }}{% endmacro %}{{ f() }}{% endfor %}',
    '{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}G{% endmacro %}{{ f() }}',
    '{% if yes %}{% macro mac() %}F{% endmacro %}{% endif %}{{ mac() }}',
    '{% for i in l %}{% macro mac() %}F{% endmacro %}{% endfor %}{{ mac is defined }}',
    '{% macro f(a) %}{{ a }}{% endmacro %}{{ f() }}|{{ f(1) }}|{{ a }}',
    '{% macro f(a=a) %}{{ a }}{% endmacro %}{{ f() }}',
    '{% macro f(p, q=p) %}{{ p }}{{ q }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(q=3) }}',
    '{% macro f(p=q, q=1) %}{{ p }}{{ q }}{% endmacro %}{{ f() }}',
    '{% set q = 9 %}{% macro f(p=q) %}{{ p }}{% endmacro %}{% set q = 8 %}{{ f() }}',
    '{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}', '{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}',
    '{% with b = 1 %}{% with b = b + 1 %}{{ b }}{% endwith %}{{ b }}{% endwith %}',
    '{% with a = 1 %}{% if yes %}{% set a = 2 %}{% endif %}{{ a }}{% endwith %}{{ a }}',
    '{% filter upper %}{% set a = "in" %}{{ a }}{% endfilter %}{{ a }}',
    '{% set b %}{% set a = "in" %}{{ a }}{% endset %}{{ b }}{{ a }}', '{% call mac() %}{% set a = 3 %}{% endcall %}',
    '{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}{{ a }}{% set a = 3 %}{{ a }}{% endcall %}{{ a }}',
    '{% for i in [1, 2] %}{% for i in "ab" %}{{ i }}{% endfor %}{{ i }}{% endfor %}{{ i }}',
    '{% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}:{{ loop.index }} {% endfor %}',
    '{% for i in l %}{% set outer = loop %}{% for j in l %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}',
    '{% for l in l %}{{ l }}{% endfor %}{{ l }}', '{% for i in l if i > 1 %}{{ i }}{{ loop.length }}{% endfor %}',
    '{% for i in l if loop.first %}{{ i }}{% endfor %}',
    '{% for i in l if i > x %}{{ i }}{% else %}none{{ a }}{% endfor %}',
    '{% for i in [] %}{% else %}{% set a = 2 %}{{ a }}{% endfor %}{{ a }}',
    '{{ loop }}', '{{ loop is defined }}', '{% for i in l %}{{ loop is defined }}{% endfor %}',
    '{% set loop = 3 %}{{ loop }}', '{% for loop in l %}{{ loop }}{% endfor %}',
    '{% for i in l %}{% set loop = 3 %}{{ loop }}{% endfor %}',
    '{% for i in l %}{% if loop.first %}{% set first = i %}{% endif %}{% endfor %}{{ first is defined }}',
    '{% set a, b = 1, 2 %}{{ a }}{{ b }}', '{% set a, b = b, a %}{{ a }}|{{ b }}',
    '{% set (a, b) = [1, 2] %}{{ a }}{{ b }}', '{% set a, b = [1] %}', '{% set a = 1, 2 %}{{ a }}',
    '{% set a = 1, %}{{ a }}', '{% set a %}x{{ n }}{% endset %}{{ a }}{{ a is string }}{{ a is escaped }}',
    '{% set a | upper | replace("X", "y") %}x{{ n }}{% endset %}{{ a }}',
    '{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}', '{% for k, v in d %}{{ k }}{% endfor %}',
    '{% for k, v in [[1, 2], [3]] %}{{ k }}{% endfor %}',
    '{% for (k, v), z in [[[1, 2], 3]] %}{{ k }}{{ v }}{{ z }}{% endfor %}', '{% for k in d %}{{ k }}{% endfor %}',
    '{% for c in s %}{{ c }}.{% endfor %}', '{% for i in n %}{% endfor %}',
    '{% for i in nope %}x{% else %}empty{% endfor %}', '{% for i in nil %}{% endfor %}',
    '{% for i in d.nope %}{% else %}e{% endfor %}', '{% for i in d.nope.more %}{% endfor %}',
    '{% for i in range(3) %}{{ i }}{% endfor %}', '{% for i in (1, 2) %}{{ i }}{% endfor %}',
    '{% for i in 1, 2 %}{{ i }}{% endfor %}',
    '{% set range = 3 %}{{ range }}', '{% set true = 3 %}{{ true }}', '{% set none = 3 %}',
    '{{ true }}{{ True }}{{ TRUE }}{{ none }}{{ None }}{{ NONE }}', '{% for true in l %}{% endfor %}',
    '{% set l2 = l %}{{ l2 is sameas l }}', '{% macro range() %}R{% endmacro %}{{ range() }}',
    '{% set a = a ~ "!" %}{{ a }}', '{% set b = b ~ "!" %}{{ b }}',
    '{% if yes %}{% if no %}{% set z = 1 %}{% else %}{% set z = 2 %}{% endif %}{% endif %}{{ z }}',
    '{% for i in l %}{% if i == 3 %}{% set z = i %}{% else %}{% set y = i %}{% endif %}{{ z }}-{{ y }} {% endfor %}',
    '{% for i in l recursive %}{% set z = i %}{% endfor %}{{ z }}',
    '{% generation %}{% set a = 1 %}{{ a }}{% endgeneration %}{{ a }}',
    '{% generation %}{{ a }}{% endgeneration %}', '{%- generation -%} x {%- endgeneration -%} y',
    '{% for i in l %}{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}{% endfor %}', '{% generation %}',
    '{% endgeneration %}', '{% for i in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}',
]
EDGE_LOOPS = [
    '{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ '
    'loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}',
    '{% for i in l %}{{ loop.previtem }}<{{ i }}<{{ loop.nextitem }} {% endfor %}',
    '{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}',
    '{% for i in l %}{{ loop.previtem.name }}{% endfor %}', '{% for i in l %}{{ loop.cycle("a", "b") }}{% endfor %}',
    '{% for i in l %}{{ loop.cycle(*["a", "b"]) }}{% endfor %}', '{% for i in l %}{{ loop.cycle() }}{% endfor %}',
    '{% for i in [1, 1, 2, 2, 1] %}{{ loop.changed(i) }}{% endfor %}',
    '{% for i in [1, 1] %}{{ loop.changed() }}{% endfor %}',
    '{% for i in [1, 1, true, 1.0] %}{{ loop.changed(i, "k") }}{% endfor %}',
    '{% for i in l %}{{ loop.nope }}|{% endfor %}', '{% for i in l %}{{ loop.nope.more }}|{% endfor %}',
    '{% for i in l %}{{ loop }}{% endfor %}', '{% for i in l %}{{ loop|length }}{% endfor %}',
    '{% for i in l %}{{ loop(l) }}{% endfor %}', '{% for i in l %}{{ loop["index"] }}{% endfor %}',
    '{% for u in users recursive %}{{ u.name }}{% if loop.first and loop.depth < 3 %}({{ loop(users) }}){% endif %}{% '
    'endfor %}',
    '{% for i in [[1, [2]], 3] recursive %}{% if i is iterable %}[{{ loop(i) }}]{% else %}{{ i }}:{{ loop.depth }}{{ '
    'loop.depth0 }}{% endif %}{% endfor %}', '{% for i in [] recursive %}x{% else %}E{% endfor %}',
    '{% for i in [1, 2] recursive %}{{ i }}{% if i == 1 %}{{ loop([]) }}{% endif %}{% else %}E{% endfor %}',
    '{% for i in l recursive %}{{ loop(nope) }}{% endfor %}', '{% for i in l recursive %}{{ loop() }}{% endfor %}',
    '{% for i in l recursive %}{{ loop(7) }}{% endfor %}',
    '{% for i in l if i > 1 recursive %}{{ i }}{% if loop.first and loop.depth == 1 %}({{ loop([9, 0]) }}){% endif %}'
    '{% endfor %}',
    '{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}.',
    '{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}',
    '{% for i in l %}{% for j in l %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}',
    '{% for i in l %}{% break %}{% else %}E{% endfor %}', '{% for i in l %}{% continue %}{% else %}E{% endfor %}',
    '{% break %}', '{% continue %}',
    '{% for i in l %}{% with z = i %}{% if z == 1 %}{% break %}{% endif %}{% endwith %}{{ i }}{% endfor %}',
    '{% for i in l %}{% filter upper %}x{% break %}{% endfilter %}{% endfor %}',
    '{% for i in l %}{% set z %}{% break %}{% endset %}{% endfor %}',
    '{% for i in l %}{{ loop.last }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}',
    '{% for i in [] %}{% else %}{% break %}{% endfor %}',
    '{% for i in l %}{% for j in [] %}{% else %}{% break %}{% endfor %}{{ i }}{% endfor %}',
    '{% for g in l|map("string") %}{{ loop.length }}{{ g }}{{ loop.last }}{% endfor %}',
    '{% set g = l|map("string") %}{{ g|list }}{{ g|list }}',
    '{% set g = l|select %}{% for i in g %}{{ i }}{% endfor %}{% for i in g %}{{ i }}{% else %}gone{% endfor %}',
    '{% set g = l|map("string") %}{{ g is iterable }}{{ g is sequence }}{{ g is mapping }}{{ g is string }}',
    '{% set g = l|select %}{{ 1 in g }}{{ g|list }}', '{% set g = l|select %}{{ g|first }}{{ g|first }}{{ g|list }}',
    '{{ l|map("string")|length }}', '{{ (l|map("string"))[0] }}|', '{{ (l|reverse)[0] }}|', '{{ l|reverse|first }}',
    '{{ l|select|last }}', '{{ s|reverse }}', '{% if l|reject %}truthy{% endif %}',
    '{% for c in d.keys() %}{{ c }}{{ loop.length }}{% endfor %}',
    '{% for x in [1, 2, 3] %}{% if loop.last %}{% set y = loop.index %}{{ y }}{% endif %}{% endfor %}',
    '{% for i in range(5) %}{{ loop.nextitem }}{% if i == 2 %}{% break %}{% endif %}{% endfor %}',
    '{% for i in [nope, 1] %}[{{ i }}]{{ i is defined }}{% endfor %}', '{% for i in l -%} {{ i }} {%- endfor %}',
    '{{ range(5)|list }}{{ range(2, 5)|list }}{{ range(5, 0, -2)|list }}{{ range(0)|list }}',
    '{{ range(3) }}', '{{ range(1, 9, 3) }}',
    '{{ range(3)[1] }}{{ range(9)[2:4] }}{{ range(3)|length }}{{ 2 in range(3) }}{{ range(3) == range(0, 3) }}',
    '{{ range(100001)|length }}', '{{ range(100000)|length }}', '{{ range("3") }}', '{{ range() }}',
    '{{ range(1, 5, 0) }}', '{{ range(2.0) }}', '{{ range(true)|list }}', '{{ range(-3)|list }}',
    '{{ range(3)|last }}{{ range(3)|sum }}{{ range(3)|reverse|list }}',
    '{% set c = cycler("a", "b") %}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.next() '
    '}}', '{% set c = cycler() %}', '{% set c = cycler("a") %}{{ c.pos }}{{ c.items }}{{ c.next() }}{{ c.pos }}',
    '{% set j = joiner() %}{{ j() }}a{{ j() }}b{{ j() }}', '{% set j = joiner(sep=1) %}{{ j() }}{{ j() }}',
    '{% set j = joiner("|") %}{{ j.used }}{{ j() }}{{ j.used }}{{ j.sep }}',
    '{{ dict(a=1, b=2) }}{{ dict() }}{{ dict([["k", 1]]) }}{{ dict({"a": 1}, b=2) }}', '{{ dict(3) }}',
    '{{ dict is callable }}{{ range is callable }}{{ s is callable }}',
]
EDGE_UNDEFINED = [
    '{{ nope }}|', '{{ nope.a }}', '{{ nope.a.b }}', '{{ d.nope }}|', '{{ d.nope.more }}', '{{ d["nope"] }}|',
    '{{ l[9] }}|', '{{ l[-1] }}{{ l[-3] }}[{{ l[-4] }}]', '{{ l["a"] }}|', '{{ l[1.0] }}|', '{{ l[true] }}',
    '{{ l.0 }}', '{{ l.1 }}{{ users.0.name }}', '{{ d.0 }}|', '{{ shadow.0 }}', '{{ shadow[0] }}|',
    '{{ s[0] }}{{ s[-1] }}[{{ s[99] }}]', '{{ n[0] }}|', '{{ nil.x }}|', '{{ nil[0] }}|', '{{ nil.x.y }}',
    '{{ nope + 1 }}', '{{ nope ~ 1 }}', '{{ 1 + nope }}',
    '{{ nope == nope }}{{ nope == none }}{{ nope != 1 }}{{ nope == d.nope }}', '{{ nope < 1 }}', '{{ nope in l }}',
    '{{ 1 in nope }}', '{{ nope in [nope] }}', '{{ -nope }}', '{{ nope|length }}',
    '{{ nope|list }}{{ nope|join }}{{ nope|upper }}{{ nope|trim }}|', '{{ nope|int }}', '{{ nope|float }}',
    '{{ nope|abs }}', '{{ nope|string }}|{{ nope|string is defined }}',
    '{{ nope|first }}|', '{{ nope|last }}',
    '{{ nope|sum }}{{ nope|sort }}{{ nope|unique|list }}{{ nope|reverse|list }}', '{{ nope|tojson }}', '{{ [nope] }}',
    '{{ {"a": nope} }}', '{{ [nope]|tojson }}', '{{ (nope, 1) }}', '{{ nope() }}', '{{ d.nope() }}', '{{ s.nope() }}',
    '{{ nope is undefined }}{{ nope is defined }}{{ nope is none }}{{ nope is string }}{{ nope is iterable }}{{ nope '
    'is sequence }}{{ nope is mapping }}{{ nope is number }}{{ nope is callable }}', '{{ nope.a is defined }}',
    '{{ nope is lower }}{{ nope is upper }}', '{{ nope is sameas nope }}', '{% if nope %}t{% else %}f{% endif %}',
    '{{ not nope }}', '{{ nope or 1 }}{{ nope and 1 }}|', '{{ nope|default("d") }}{{ nope|d }}{{ nope|default }}|',
    '{{ none|default("d") }}{{ none|default("d", true) }}{{ ""|default("d", boolean=True) }}{{ 0|d(1, true) }}{{ 0|'
    'd(1) }}', '{{ nope.a|default("d") }}', '{{ d.nope|default("d") }}{{ d.nope.x|default("d") }}',
    '{{ (1 if no) }}|{{ (1 if no) is defined }}', '{{ 1 if no }}|',
    '{{ (1 if no).x }}', '{{ [1 if no] }}', '{{ (1 if no) ~ "x" }}', '{{ "a" + (1 if no) }}',
    '{% set u = nope %}{{ u is defined }}', '{% set u = nope %}{{ u.x }}',
    '{% macro f(u) %}{{ u is defined }}{{ u|d("z") }}{% endmacro %}{{ f(nope) }}{{ f() }}',
    '{% macro f(u=1) %}{{ u }}{% endmacro %}{{ f(nope) }}|{{ f(none) }}', '{{ nope|replace("a", "b") }}|',
    '{{ nope|items|list }}', '{{ none|items|list }}', '{{ nope|dictsort }}', '{{ nope|map("upper")|list }}',
    '{{ nope|batch(2)|list }}',
    '{{ nope|indent }}', '{{ nope|title }}{{ nope|capitalize }}{{ nope|wordcount }}{{ nope|center(3) }}|',
    '{{ nope|round }}', '{{ nope|e }}{{ nope|safe }}|', '{{ nope|format(1) }}', '{{ nope|truncate(5) }}',
    '{{ nope|min }}', '{{ nope|urlencode }}', '{{ "%s" % nope }}|{{ "%r" % nope }}', '{{ "{}".format(nope) }}|',
    '{{ l[nope] }}', '{{ d[nope] }}', '{{ s[nope:] }}', '{{ l[:nope] }}', '{{ nope[1:] }}', '{{ {nope: 1} }}',
    '{{ "a" in nope }}', '{{ nope|attr("a") }}', '{{ l * nope }}', '{{ nope % 2 }}', '{{ nope ** 2 }}',
    '{{ nope // 2 }}', '{{ s.startswith(nope) }}',
    '{% for i in l %}{{ nope[i] }}{% endfor %}', '{{ d.items is callable }}',
    '{{ shadow.items is callable }}{{ shadow.nope is callable }}',
    '{{ shadow["items"] }}{{ shadow.name }}{{ shadow.count }}', '{{ shadow.get("name") }}', '{{ d.__class__ }}',
    '{{ d.__class__ is defined }}', '{{ d["__class__"] is defined }}{{ d["__class__"] }}', '{{ d._x }}|',
    '{{ s.__len__() }}', '{{ l.append(1) }}', '{{ l.append is defined }}', '{{ l.pop() }}{{ l }}',
    '{{ l.pop(0) }}{{ l.pop(-1) }}{{ l }}', '{{ l.clear() }}{{ l }}', '{{ [].pop() }}', '{{ l.pop(9) }}',
    '{{ l.reverse() }}', '{{ l.insert(0, 1) }}', '{{ l.extend([1]) }}', '{{ l.remove(1) }}',
    '{% set k = [1, 2] %}{% for i in k %}{{ i }}{{ k.pop() }}{% endfor %}{{ k }}', '{{ l.sort() }}',
    '{{ l.count(1) }}{{ l.index(2) }}{{ l.copy() }}', '{{ l.index(9) }}', '{{ d.pop("b") }}', '{{ d.update({}) }}',
    '{{ d.clear() }}', '{{ d.setdefault("a", 1) }}', '{{ d.get("b") }}{{ d.get("z") }}{{ d.get("z", 3) }}',
    '{{ d.get("z", default=3) }}',
    '{{ d|attr("b") }}|', '{{ s|attr("upper")() }}', '{{ d|attr("__class__") }}', '{{ d|attr("items")()|list }}',
    '{{ users|attr("0") }}|', '{{ l|attr("append") }}',
]
EDGE_EXPRESSIONS = [
    '{{ not a in l }}', '{{ not 3 in l }}', '{{ (not 3) in l }}', '{{ -2**2 }}', '{{ 2**-1 }}', '{{ 2**3**2 }}',
    '{{ (2**3)**2 }}', '{{ -1|abs }}', '{{ (-1)|abs }}', '{{ - -1 }}', '{{ +1 }}{{ --1 }}', '{{ -n|abs }}',
    '{{ a ~ s|upper }}', '{{ (a ~ s)|upper }}', '{{ 1 ~ 2 + 3 }}', '{{ 1 + 2 ~ 3 }}', '{{ 1 ~ 2 * 3 }}',
    '{{ "a" ~ 1 ~ none ~ true ~ 1.0 ~ [1] }}', '{{ 1 if yes else 2 if no else 3 }}', '{{ 1 if no else 2 if no }}|',
    '{{ (1 if no else 2) if yes }}', '{{ 1 if no if yes else 4 }}',
    '{{ n is divisibleby 5 }}', '{{ n is divisibleby(5) }}', '{{ n is not divisibleby 2 }}',
    '{{ not n is divisibleby 5 }}', '{{ n is odd and x is odd }}', '{{ n is odd == yes }}', '{{ n + 1 is even }}',
    '{{ n is not none }}', '{{ n is none is false }}', '{{ nope is not defined }}',
    '{{ n is eq 5 }}{{ n is eq(5) }}{{ n is equalto 5 }}{{ n is ne 5 }}{{ n is gt 4 }}{{ n is lessthan 9 }}{{ n is ge '
    '5 }}{{ n is le 4 }}', '{{ n is == 5 }}', '{{ n is in [5] }}{{ n is in l }}', '{{ n is not in l }}',
    '{{ n is in(l) }}', '{{ n is sameas 5 }}',
    '{{ s is string }}{{ s is iterable }}{{ s is sequence }}{{ s is mapping }}{{ d is mapping }}{{ d is sequence }}{{ '
    'd is iterable }}{{ l is sequence }}{{ n is iterable }}',
    '{{ yes is number }}{{ yes is integer }}{{ yes is boolean }}{{ yes is true }}{{ 1 is true }}{{ 1 is boolean }}{{ '
    '1.0 is float }}{{ 1.0 is integer }}{{ 1.0 is number }}{{ none is none }}{{ 0 is false }}{{ no is false }}',
    '{{ n is string or yes }}',
    '{{ "a" is lower }}{{ "A" is upper }}{{ "1" is lower }}{{ 1 is lower }}{{ "aB" is lower }}',
    '{{ 2.0 is even }}{{ 2.5 is odd }}{{ 1.0 is odd }}', '{{ "a" is odd }}', '{{ "abc" is odd }}',
    '{{ 5 is divisibleby 0 }}', '{{ n is divisibleby }}', '{{ n is nosuch }}',
    '{{ "upper" is filter }}{{ "nosuch" is filter }}{{ "even" is test }}{{ "nosuch" is test }}{{ "==" is test }}',
    '{{ html|e is escaped }}{{ html is escaped }}{{ 1 is escaped }}', '{{ "a" is in "abc" }}',
    '{{ n is string }}{{ n is not string }}',
    '{{ n is defined(1) }}', '{{ n is odd or nope.x }}', '{{ yes or nope.x }}', '{{ no and nope.x }}',
    '{{ 1 and 2 }}{{ 0 and 2 }}{{ 0 or "" }}|{{ "" or [] }}{{ none or none }}{{ not "" }}{{ not [0] }}',
    '{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 3 > 2 > 1 }}{{ 1 == 1.0 == true }}{{ 1 != 2 != 1 }}', '{{ 1 in l in [l] }}',
    '{{ 1 < 2 == true }}', '{{ (1 < 2) == true }}',
    '{{ "a" < "B" }}{{ "a" < "b" }}{{ "" < "a" }}{{ "é" > "z" }}{{ "😀" > "\uffff" }}', '{{ "a" < 1 }}',
    '{{ [1, 2] < [1, 3] }}{{ [1] < [1, 0] }}{{ (1, 2) < (2,) }}',
    '{{ [1] == (1,) }}{{ [] == [] }}{{ {} == [] }}{{ {"a": 1, "b": 2} == {"b": 2, "a": 1} }}', '{{ none < 1 }}',
    '{{ {} < {} }}', '{{ true < 2 }}{{ true + true }}{{ true * 3 }}{{ -true }}{{ true / 2 }}',
    '{{ 7 // 2 }}{{ -7 // 2 }}{{ 7 // -2 }}{{ -7 // -2 }}', '{{ 7 % 3 }}{{ -7 % 3 }}{{ 7 % -3 }}{{ -7 % -3 }}',
    '{{ 7.5 // 2 }}{{ -7.5 // 2 }}{{ -7.5 % 2 }}{{ 7.5 % -2 }}{{ 0.0 // 3 }}{{ -0.0 % 3 }}',
    '{{ 1 / 2 }} {{ 4 / 2 }} {{ 1 / 3 }} {{ -1 / 3 }} {{ 10 / 5.0 }}', '{{ 1 / 0 }}', '{{ 1 % 0 }}', '{{ 1 // 0 }}',
    '{{ 1.0 / 0 }}', '{{ 0 ** 0 }} {{ 2 ** 0.5 }} {{ 2.0 ** 3 }} {{ 2 ** -2 }} {{ (-2) ** 3 }} {{ 10 ** 18 }}',
    '{{ 0 ** -1 }}', '{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }}',
    '{{ 3 * "ab" }}{{ "ab" * 0 }}{{ "ab" * -1 }}|{{ [1] * 2 }}{{ 2 * (1, 2) }}', '{{ "a" * 2.0 }}', '{{ "a" + 1 }}',
    '{{ 1 + "a" }}', '{{ [1] + (2,) }}', '{{ [1] + [2] }}{{ (1,) + (2,) }}', '{{ {} + {} }}', '{{ "a" - "b" }}',
    '{{ none + 1 }}',
    '{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789012345678.0 }} {{ 1e-4 }} {{ 1e-5 }} {{ 0.00001234 }} {{ 1.0 }} '
    '{{ 100000.0 }} {{ 1e22 }} {{ 1.5e300 * 1e10 }}',
    '{{ 1e308 * 10 }} {{ -1e308 * 10 }} {{ (1e308 * 10) - (1e308 * 10) }}', '{{ 1e400 }}',
    '{{ 5e-324 }} {{ 2.2250738585072014e-308 }} {{ 1.7976931348623157e308 }}',
    '{{ -0.0 }} {{ 0.0 == -0.0 }} {{ [-0.0] }}',
    '{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_0.2_5 }} {{ 1e1_0 }} {{ 0xFF_FF }}', '{{ 007 }}',
    '{{ 00 }} {{ 0_0 }}', '{{ 1. }}', '{{ .5 }}', '{{ 1.e3 }}', '{{ 1__0 }}', '{{ 0x }}', '{{ 1.5.real }} {{ 5.real }}',
    '{{ 1.is_integer }}', '{{ 1_ }}', '{{ 1e }}', '{{ 12abc }}', '{{ 1if yes else 2 }}', '{{ 1.0|int }}{{ 1e3|int }}',
    '{{ (1) }}{{ (1,) }}{{ () }}{{ (1, 2,) }}{{ 1, 2 }}{{ [1, 2,] }}{{ {"a": 1,} }}{{ [] }}{{ {} }}', '{{ , }}',
    '{{ (,) }}', '{{ [,] }}', '{{ }}', '{{ () is iterable }}', '{{ {1: 2, 1.0: 3, true: 4} }}',
    '{{ {"a": 1, "a": 2} }}', '{{ {[]: 1} }}', '{{ {(1, 2): 3}[(1, 2)] }}{{ {(1, 2): 3}[1, 2] }}',
    '{{ {none: 1}[none] }}{{ {true: 1}[1] }}{{ {1: "i"}[1.0] }}{{ {"1": "s"}[1] }}|',
    '{{ {"a": {"b": [1, {"c": 2}]}}.a.b[1].c }}', '{{ {"a": 1}.a }}{{ {"a": 1}["a"] }}', '{{ {a: 1} }}', '{{ {{}} }}',
    '{{{"a": 1}}}', '{{{"a": {"b": 1}}}}', '{{ {"a": {}}}}',
    '{{ l[0:2] }}{{ l[:] }}{{ l[::-1] }}{{ l[-2:] }}{{ l[:-1] }}{{ l[5:] }}{{ l[::2] }}{{ l[2:0:-1] }}{{ l[none:none] '
    '}}{{ l[1:none:1] }}', '{{ l[::0] }}',
    '{{ s[1:4] }}{{ s[::-1] }}{{ s[-3:] }}{{ s[99:] }}|{{ uni[5:9] }}{{ uni[-1] }}', '{{ l["a":] }}', '{{ l[1.0:] }}',
    '{{ d[1:] }}', '{{ n[1:] }}|', '{{ l[1, 2] }}|', '{{ (1, 2, 3)[1:] }}{{ (1, 2, 3)[0] }}', '{{ l[0:1][0] }}',
    '{{ l[:2]|join }}', '{{ l[] }}', '{{ l[true:] }}',
    '{{ "a" "b" }}{{ "a" \'b\' "c" }}', '{{ "a" "b"|upper }}', '{{ s"a" }}',
    '{{ "\\n" }}|{{ "\\t" }}|{{ "\\\\" }}|{{ "\\"" }}|{{ \'\\\'\' }}|{{ "\\\'" }}',
    '{{ "\\x41\\u00e9\\U0001F600\\101\\0\\N{BULLET}\\N{LATIN SMALL LETTER E WITH ACUTE}" }}', '{{ "\\q\\d\\e" }}',
    '{{ "\\x4" }}', '{{ "\\u12" }}', '{{ "\\N{NO SUCH NAME}" }}', '{{ "\\U00110000" }}', '{{ "\\é" }}', '{{ "é\\n日" }}',
    '{{ "\\400\\777" }}', '{{ "a\\\nb" }}', '{{ "a\nb" }}', '{{ "a\r\nb" }}', '{{ "a\rb" }}', '{{ "unclosed }}',
    "{{ 'it''s' }}", '{{ "%}" }}{{ "}}" }}{{ "{{" }}{{ "{%" }}{{ "#}" }}', '{{ "\\a\\b\\f\\v\\r" }}',
    '{{ ["\\\\", "\\"", "\'", "\'\\"", "\\n\\t\\r", "é日😀"] }}', '{{ [ctl] }}', '{{ [uni, html, text] }}',
    '{{ {"k\'": "v\\""} }}', '{{ [s] ~ s }}', '{{ ["\\x07\\x1f\\x80\\x9f\\xad"] }}',
    '{{ m }}', '{{ d }}', '{{ users[0] }}', '{{ [true, false, none, 1, 1.0, -0.0, 1e100, "s", [], {}, ()] }}',
    '{{ (1, [2, (3,)], {"a": (4, 5)}) }}', '{{ [1.0, 1e16, 1e-7, 0.1] }}', '{{ [f, n] }}{{ f }}{{ n }}',
    '{{ none }}{{ [none] }}{{ true }}{{ [true] }}', '{{ d.keys() }}', '{{ d.values() }}', '{{ d.items() }}',
    '{{ d.keys()|list }}{{ d.items()|list }}{{ d.values()|list }}', '{{ d.keys()|length }}{{ "b" in d.keys() }}',
    '{{ d.keys()[0] }}|', '{{ s[0:0] }}|{{ [s[0:0]] }}', '{{ [html|e] }}{{ (html|e,) }}', '{{ [s|safe] }}',
    '{% macro f() %}x{% endmacro %}{{ f }}{{ [f()] }}', '{{ [range(2)] }}',
    '{{ s.upper() }}{{ s["upper"]() }}',
    '{{ "a,b,,c".split(",") }}{{ "a b  c ".split() }}{{ "".split() }}{{ "".split(",") }}{{ "a,b,c".split(",", 1) }}{{ '
    '"a,b,c".rsplit(",", 1) }}{{ " a b ".split(none, 1) }}', '{{ "abc".split("") }}',
    '{{ "a,b,c".split(sep=",", maxsplit=1) }}', '{{ "a\\u00a0b\\u2003c\\x1cd".split() }}',
    '{{ "a\\nb\\r\\nc\\u2028d\\x0be\\x85f".splitlines() }}{{ "a\\n".splitlines(true) }}{{ "\\n\\n".splitlines() }}{{ '
    '"".splitlines() }}',
    '{{ "xxaxx".strip("x") }}{{ "xyaxy".lstrip("xy") }}{{ "  a ".rstrip() }}|{{ "\\u00a0a\\u2003".strip() }}|{{ '
    '"a".strip(none) }}',
    '{{ "abc".find("c") }}{{ "abc".find("z") }}{{ "abc".index("b") }}{{ "aXbX".rfind("X") }}{{ "aaaa".count("aa") }}{{ '
    '"abc".count("") }}{{ "abc".find("") }}{{ "abc".find("", 9) }}', '{{ "abc".index("z") }}',
    '{{ "a-b-c".partition("-") }}{{ "a-b-c".rpartition("-") }}{{ "abc".partition("-") }}{{ "abc".rpartition("-") }}',
    '{{ "abc".partition("") }}',
    '{{ "7".zfill(3) }}{{ "-7".zfill(4) }}{{ "+7".zfill(4) }}{{ "abc".zfill(2) }}{{ "".zfill(2) }}',
    '{{ "a".center(4) }}|{{ "ab".center(5, "*") }}|{{ "a".ljust(3, "-") }}|{{ "a".rjust(3) }}|{{ "abc".center(2) }}',
    '{{ "a".center(4, "xy") }}',
    '{{ "a\\tb\\n\\tc".expandtabs() }}|{{ "a\\tb".expandtabs(4) }}|{{ "a\\tb".expandtabs(0) }}',
    '{{ uni.upper() }}|{{ uni.lower() }}|{{ uni.title() }}|{{ uni.swapcase() }}|{{ uni.casefold() }}|{{ '
    'uni.capitalize() }}', '{{ "they\'re bill\'s".title() }}{{ "they\'re bill\'s"|title }}',
    '{{ "a".join(["b", "c"]) }}{{ ",".join("abc") }}{{ ",".join(d) }}', '{{ ",".join([1]) }}',
    '{{ "aaa".replace("a", "b", 2) }}{{ "abc".replace("", "-") }}{{ "abc".replace("", "-", 2) }}{{ "aaa".replace("a", '
    '"b", -1) }}{{ "aaa".replace("a", "b", 0) }}',
    '{{ "abc".startswith("a") }}{{ "abc".startswith(("x", "a")) }}{{ "abc".startswith("b", 1) }}{{ "abc".endswith("c", '
    '0, 2) }}{{ "abc".startswith("") }}', '{{ "abc".startswith(["a"]) }}', '{{ "abc".startswith(1) }}',
    '{{ "abc".removeprefix("a") }}{{ "abc".removesuffix("c") }}{{ "abc".removesuffix("") }}',
    '{{ "1".isdigit() }}{{ "²".isdigit() }}{{ "²".isdecimal() }}{{ "½".isnumeric() }}{{ "٣".isdecimal() }}{{ '
    '"é".isalpha() }}{{ "".isalpha() }}{{ "a1".isalnum() }}{{ " ".isspace() }}{{ "\\u00a0".isspace() }}{{ "Ab '
    'Cd".istitle() }}{{ "a_1".isidentifier() }}{{ "é".isascii() }}{{ "".isascii() }}{{ "a\\n".isprintable() }}{{ '
    '"".isprintable() }}',
    '{{ "%s|%d|%5.2f|%x|%o|%e|%g|%c|%%|%r|%i" % (1, 2, 3.14159, 255, 8, 12345.678, 1e-5, "c", "q", 7) }}',
    '{{ "%(a)s %(b)05d" % {"a": 1, "b": 2} }}',
    '{{ "%-5s|%5s|%05d|%+d|% d|%#x|%.3s|%*d" % ("a", "b", 42, 5, 5, 255, "abcdef", 4, 7) }}',
    '{{ "%s" % "a" }}{{ "%s" % [1, 2] }}{{ "%s %s" % (1, [2]) }}{{ "%s" % (1,) }}{{ "%s" % {} }}', '{{ "%s %s" % 1 }}',
    '{{ "%d" % "a" }}', '{{ "a" % 1 }}', '{{ "a" % [] }}{{ "a" % {} }}',
    '{{ "%d" % 3.99 }}{{ "%d" % true }}{{ "%s" % none }}{{ "%.1f" % 2 }}{{ "%x" % -255 }}',
    '{{ "%c%c" % (65, 128512) }}', '{{ "%q" % 1 }}', '{{ "%" % 1 }}',
    '{{ "%s"|format("a") }}{{ "%s %s"|format("a", 1) }}{{ "%(k)s"|format(k=2) }}', '{{ "%s"|format(1, k=2) }}',
    '{{ "%s"|format }}', '{{ "%.0f %.0f %.0f %.2f" % (0.5, 1.5, 2.5, 1.005) }}',
    '{{ "%g %g %g %g" % (100000.0, 1000000.0, 0.0001, 0.00001) }}',
    '{{ "{} {}".format(1, 2) }}{{ "{1}{0}".format(1, 2) }}{{ "{a}".format(a=1) }}{{ "{{}}".format() }}{{ '
    '"{0[1]}".format([1, 2]) }}{{ "{0[k]}".format({"k": 3}) }}{{ "{!r}".format("a") }}{{ "{!s:>4}".format(1) }}',
    '{{ "{:>6}|{:<6}|{:^6}|{:*^6}|{:06d}|{:+}|{:,}|{:_}|{:x}|{:#x}|{:b}|{:.2f}|{:e}|{:.1%}|{:g}".format("a", "b", "c", '
    '"d", 42, 5, 1234567, 1234567, 255, 255, 5, 3.14159, 12345.678, 0.256, 1e-5) }}', '{{ "{}".format() }}',
    '{{ "{0} {}".format(1, 2) }}', '{{ "{".format() }}', '{{ "{a.__class__}".format(a=1) }}',
    '{{ "{0.real}".format(5) }}', '{{ "{nope}".format() }}', '{{ "{:d}".format("a") }}',
    '{{ "{:>{}}".format("a", 4) }}', '{{ "{a} {b}".format_map({"a": 1, "b": 2}) }}',
    '{{ "{:10}|{:10}|{:10}".format(1, "a", 1.5) }}',
    '{{ "{:5}".format(true) }}{{ "{}".format(true) }}{{ "{}".format(none) }}{{ "{}".format([1]) }}',
    '{{ "{:5}".format(none) }}',
    '{{ "{:.3}".format("abcdef") }}{{ "{:.3}".format(3.14159) }}{{ "{:c}".format(65) }}{{ "{:n}".format(5) }}',
    '{{ n.bit_length() }}{{ f.is_integer() }}{{ n.real }}{{ n.imag }}{{ n.numerator }}',
    '{{ 9007199254740993 + 0.0 }} {{ 9007199254740993 == 9007199254740992.0 }}',
    '{{ [1, 2.0, true]|sum }}{{ 1 + 1.0 }}{{ 2 * 0.5 }}', '{{ {"b": 1}.items()|list }}',
    '{{ l is sameas l }}{{ none is sameas none }}{{ true is sameas 1 }}', '{{ s is in d }}',
    '{{ "" in "" }}{{ "" in "a" }}', '{{ 1 in "a" }}', '{{ "a" in 1 }}',
    '{{ none in [none] }}{{ 1 in [1.0] }}{{ "1" in [1] }}{{ true in [1] }}', '{{ 1 not in l }}{{ not 1 in l }}',
    '{{ n.x }}|', '{{ 1 is }}', '{{ 1 | }}', '{{ s | upper | lower }}', '{{ s|upper()|lower() }}',
    '{{ s|replace("o","0")|upper }}', '{{ s.replace("o", "0").upper().split()[0][1:] }}', '{{ (s|upper).lower() }}',
    '{{ s|upper.x }}', '{{ s |nosuch }}', '{{ 1 if no else s|nosuch }}', '{% if no %}{{ s|nosuch }}{% endif %}ok',
    '{% if no %}{{ s is nosuch }}{% endif %}ok', '{{ s|default(s|nosuch) if no }}',
    '{{ a.b.c if a.b is defined else "no" }}', '{{ yes if yes }}', '{{ x if x > 5 else -x }}', '{{ l|length > 2 }}',
    '{{ l|length + 1 }}', '{{ l|sum * 2 }}', '{{ l|first == 3 and "y" or "n" }}', '{{ not yes or yes }}',
    '{{ not (yes or yes) }}', '{{ yes and not no }}', '{{ s[0].upper() + s[1:] }}', '{{ f(x) }}', '{{ n() }}',
    '{{ "a"() }}', '{{ s.upper(1) }}', '{{ s.upper(nope=1) }}', '{{ s.split(*[" "]) }}{{ s.split(**{"sep": " "}) }}',
    '{{ s.split(*" ", **{"maxsplit": 1}) }}', '{{ dict(**d) }}', '{{ dict(a=1, a=2) }}', '{{ s.split(sep=" ", " ") }}',
    '{{ a = 1 }}', '{{ a == 1 == }}', '{{ 1 2 }}', '{{ a b }}', '{{ a; b }}', '{{ a & b }}', '{{ @ }}',
    '{{ a ? b : c }}', '{{ a! }}', '{{ !a }}', '{{ a && b }}', '{{ `a` }}', '{{ $a }}', '{{ (1 }}', '{{ 1) }}',
    '{{ [1) }}', '{{ é }}|{{ _x }}|', '{% set é = 1 %}{{ é }}', '{% set _x = 1 %}{{ _x }}', '{{ and }}', '{{ in }}',
    '{{ is }}', '{{ if }}', '{% set if = 1 %}', '{{ not }}', '{{ d.if }}|', '{{ d.in }}|{{ d.not }}|', '{{ d.is }}|',
    '{{ else }}', '{{ for }}', '{{ set }}',
]
EDGE_FILTERS = [
    '{{ "a\nb\n\nc"|indent }}', '{{ "a\nb\n\nc"|indent(2, true) }}', '{{ "a\nb\n\nc"|indent(2, blank=true) }}',
    '{{ "a\nb\n\nc"|indent("> ", true, true) }}', '{{ "a\n"|indent }}|', '{{ ""|indent(2, true) }}|',
    '{{ "a\r\nb\x0bc\u2028d"|indent(1) }}', '{{ "\n"|indent(1, true, true) }}|', '{{ 5|indent }}',
    '{{ text|indent(width=1, first=true, blank=true) }}', '{{ "a\nb"|indent(0) }}{{ "a\nb"|indent(-1) }}',
    '{{ "a\nb"|indent(1.5) }}', '{{ "<\nb"|e|indent("<") }}',
    '{{ "aaa"|replace("a", "b", 2) }}', '{{ "aaa"|replace("a", "b", count=1) }}', '{{ "aaa"|replace("a", "b", 0) }}',
    '{{ "aaa"|replace("a", "b", none) }}', '{{ 515|replace(5, 6) }}', '{{ "aaa"|replace("", "-") }}',
    '{{ "a"|replace("a") }}', '{{ "<a>"|e|replace("<", "x") }}', '{{ "<a>"|e|replace("a", "<") }}',
    '{{ "<a>"|replace("a", "<b>"|safe) }}', '{{ none|replace("o", "0") }}',
    '{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 1234.5|round(-2) }} {{ 5|round }} {{ 15|round(-1) }} {{ '
    '25|round(-1) }} {{ -2.5|round }} {{ (-2.5)|round }}',
    '{{ 2.1|round(method="ceil") }} {{ 2.9|round(0, "floor") }} {{ 2.123|round(2, "ceil") }} {{ -2.123|round(2, '
    '"floor") }} {{ 1234|round(-2, "ceil") }} {{ 5|round(1, "floor") }}', '{{ 2.5|round(1, "nope") }}',
    '{{ "2"|round }}', '{{ true|round }} {{ 1e300|round(2) }} {{ 0.5|round }} {{ -0.4|round }} {{ (-0.4)|round }}',
    '{{ 2.5|round(none) }}', '{{ 42.55|round|int }}',
    '{{ 1.005|round(2) }} {{ 0.15|round(1) }} {{ 0.25|round(1) }} {{ 0.35|round(1) }} {{ 1e22|round(-22) }} {{ 5e-324|'
    'round(3) }}', '{{ 1|round(2.0) }}',
    '{{ "42"|int }}{{ " 42 "|int }}{{ "42.7"|int }}{{ "x"|int }}{{ "x"|int(7) }}{{ "1_0"|int }}{{ "1e3"|int }}{{ ""|'
    'int }}{{ none|int }}{{ none|int(3) }}{{ true|int }}{{ 3.9|int }}{{ -3.9|int }}{{ [1]|int(2) }}',
    '{{ "0x1A"|int(0, 16) }} {{ "1A"|int(base=16) }} {{ "0b11"|int(0, 2) }} {{ "0o17"|int(0, 8) }} {{ "0x1A"|'
    'int(base=0) }} {{ "z"|int(base=36) }} {{ "12"|int(9, 2) }} {{ "٣"|int }} {{ "+5"|int }} {{ "- 5"|int(-1) }} {{ '
    '"0x1A"|int }} {{ "010"|int }} {{ "010"|int(base=0) }}', '{{ "inf"|int }}', '{{ "nan"|int }}',
    '{{ 1e308 * 10|int }}', '{{ (1e308 * 10)|int }}', '{{ "1"|int(default="d") }}{{ "x"|int("d") }}{{ "x"|int(none) }}',
    '{{ "1"|int(0, 99) }}', '{{ "1"|int(0, "a") }}',
    '{{ "3.5"|float }} {{ "x"|float }} {{ "x"|float(1.5) }} {{ "x"|float("d") }} {{ 3|float }} {{ "1e3"|float }} {{ " '
    '1.5 "|float }} {{ "inf"|float }} {{ "-Infinity"|float }} {{ "nan"|float }} {{ none|float }} {{ true|float }} {{ '
    '"1_0.5"|float }} {{ "٣.5"|float }} {{ ".5"|float }} {{ "5."|float }} {{ "0x1p3"|float }}',
    '{{ users|map(attribute="name")|join(",") }}', '{{ users|map(attribute="addr.city")|join(",") }}',
    '{{ users|map(attribute="tags.0")|join(",") }}', '{{ users|map(attribute="age", default=0)|list }}',
    '{{ users|map(attribute="addr.city", default="-")|list }}', '{{ users|map(attribute="nope")|list }}',
    '{{ [[1, 2], [3, 4]]|map(attribute=1)|list }}{{ [[1, 2], [3, 4]]|map(attribute="1")|list }}',
    '{{ l|map("string")|join("-") }}',
    '{{ w|map("upper")|list }}{{ w|map("replace", "a", "z")|list }}{{ w|map("center", 3)|list }}{{ ["a b"]|'
    'map("replace", old="a", new="c")|list }}', '{{ w|map|list }}', '{{ w|map("nosuch")|list }}',
    '{{ []|map("nosuch")|list }}', '{{ w|map(attribute="x", nope=1)|list }}', '{{ l|map("default", 1)|list }}',
    '{{ d|map("upper")|list }}', '{{ s|map("upper")|join }}',
    '{{ l|select("odd")|list }}{{ l|select("gt", 1)|list }}{{ l|select(">", 1)|list }}{{ m|select|list }}{{ m|reject|'
    'list }}{{ l|reject("even")|list }}{{ m|select("string")|list }}{{ m|reject("none")|list }}',
    '{{ l|select("nosuch")|list }}', '{{ users|selectattr("age")|map(attribute="name")|list }}',
    '{{ users|selectattr("age", "eq", 3)|map(attribute="name")|list }}{{ users|rejectattr("age", "eq", 3)|'
    'map(attribute="name")|list }}{{ users|selectattr("age", "defined")|list|length }}{{ users|selectattr("addr.city", '
    '"equalto", "Rome")|map(attribute="name")|list }}{{ users|selectattr("tags.0", "==", "x")|list|length }}{{ users|'
    'rejectattr("tags")|map(attribute="name")|list }}', '{{ users|selectattr("age", "gt", 1)|list }}',
    '{{ users|selectattr|list }}',
    '{{ w|select("in", ["a", "b"])|list }}{{ w|reject("in", "ab")|list }}{{ w|select("equalto", "a")|list }}',
    '{{ l|select("divisibleby", 3)|list }}{{ l|select("divisibleby", num=3)|list }}',
    '{{ [1, nope, 2]|select("defined")|list }}',
    '{{ l|sum }}{{ l|sum(start=10) }}{{ []|sum }}{{ l|sum(none, 5) }}', '{{ users|sum(attribute="age") }}',
    '{{ users[:3]|sum(attribute="age") }}{{ users[:3]|sum("age", 0.5) }}', '{{ w|sum }}', '{{ w|sum(start="") }}',
    '{{ [[1], [2]]|sum(start=[]) }}', '{{ [0.1] * 3 }}{{ [0.1, 0.2, 0.3]|sum }}',
    '{{ [[1, 2], [3, 4]]|sum(attribute=1) }}',
    '{% for g in users|groupby("addr.city", default="none") %}{{ g.grouper }}:{{ g.list|map(attribute="name")|'
    'join("+") }};{{ g[0] }}{{ g|length }} {% endfor %}',
    '{% for k, v in users[:3]|groupby("age") %}{{ k }}={{ v|length }} {% endfor %}', '{{ users|groupby("age") }}',
    '{{ users|groupby("age", default=0)|map("first")|list }}',
    '{{ [{"k": "b"}, {"k": "A"}, {"k": "B"}, {"k": "a"}]|groupby("k") }}',
    '{{ [{"k": "b"}, {"k": "A"}, {"k": "B"}, {"k": "a"}]|groupby("k", case_sensitive=true) }}',
    '{{ [[1, 2], [1, 3]]|groupby(0) }}', '{{ []|groupby("k") }}',
    '{{ [{"k": "B"}, {"k": "b"}]|groupby("k")|map(attribute="grouper")|list }}{{ [{"k": "B"}, {"k": "b"}]|groupby("k")|'
    'map(attribute="list")|list }}',
    '{{ ["a", "A", "b", "B", "a"]|unique|list }}{{ ["a", "A", "b"]|unique(true)|list }}{{ [1, 1.0, true, 2]|unique|'
    'list }}{{ users|unique(attribute="age")|map(attribute="name")|list }}{{ "abcab"|unique|join }}',
    '{{ [[1], [1]]|unique|list }}',
    '{{ w|sort }}{{ w|sort(case_sensitive=true) }}{{ w|sort(reverse=true) }}{{ w|sort(true, true) }}{{ l|sort }}{{ '
    '"hello"|sort }}{{ d|sort }}', '{{ m|sort }}',
    '{{ [1, 2.5, true, 0]|sort }}{{ [[2], [1, 5], [1]]|sort }}{{ [(2, "a"), (1, "b")]|sort }}',
    '{{ users|sort(attribute="name")|map(attribute="name")|list }}{{ users[:3]|sort(attribute="age,name")|'
    'map(attribute="name")|list }}{{ users[:3]|sort(attribute="age,name", reverse=true)|map(attribute="name")|list }}',
    '{{ users|sort(attribute="tags.0")|list }}', '{{ users|sort(attribute="age") }}', '{{ users|sort }}',
    '{{ ["b", "a"]|sort(attribute=0) }}{{ [[1, "z"], [0, "y"]]|sort(attribute=1) }}{{ [[1, "z"], [0, "y"]]|'
    'sort(attribute="1") }}', '{{ ["É", "e", "z", "a"]|sort }}', '{{ [none, none]|sort }}',
    '{{ [none]|sort }}{{ []|sort }}', '{{ ["b", "B", "a", "A"]|sort(reverse=true) }}',
    '{{ d|dictsort }}{{ d|dictsort(true) }}{{ d|dictsort(reverse=true) }}',
    '{{ {"b": 1, "a": 2}|dictsort(by="value") }}{{ {"b": 1, "a": 2}|dictsort(false, "value", true) }}{{ {"b": "x", '
    '"a": "X", "c": "W"}|dictsort(by="value") }}', '{{ d|dictsort(by="value") }}', '{{ d|dictsort(by="nope") }}',
    '{{ {1: 1, "a": 2}|dictsort }}', '{{ l|dictsort }}', '{{ d|items|list }}{{ {}|items|list }}', '{{ l|items|list }}',
    '{% for k, v in d|items %}{{ loop.index }}{{ k }}{% endfor %}',
    '{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}', '{{ users[0]|items|first }}',
    '{{ range(7)|batch(3)|list }}{{ range(7)|batch(3, "-")|list }}{{ range(6)|batch(3, "-")|list }}{{ []|batch(2)|list '
    '}}{{ range(3)|batch(0)|list }}{{ range(3)|batch(-1)|list }}{{ range(3)|batch(1, 0)|list }}{{ range(3)|batch(2, '
    'none)|list }}',
    '{{ range(7)|slice(3)|list }}{{ range(7)|slice(3, "-")|list }}{{ range(2)|slice(3, 0)|list }}{{ []|slice(2)|list '
    '}}{{ range(6)|slice(3, "-")|list }}{{ range(3)|slice(-1)|list }}', '{{ range(3)|slice(0)|list }}',
    '{{ "abcd"|batch(3, "x")|list }}{{ range(5)|batch(2.5)|list }}', '{{ range(3)|slice(1.5)|list }}',
    '{{ "a"|center(5) }}|{{ "ab"|center(5) }}|{{ "abc"|center(2) }}|{{ "a"|center }}|{{ ""|center(3) }}|',
    '{{ 5|center(5) }}', '{{ "a"|center(width=3) }}|{{ "é日"|center(6) }}|',
    '{{ "foo bar baz qux"|truncate(9) }}|{{ "foo bar baz qux"|truncate(9, true) }}|{{ "foo bar baz qux"|truncate(11) '
    '}}|{{ "foo bar baz qux"|truncate(11, false, "...", 0) }}|{{ "foo bar baz qux"|truncate(9, end="") }}|{{ '
    '"foobarbazqux"|truncate(5, leeway=0) }}|{{ "foobarbazqux"|truncate(3, leeway=0) }}', '{{ "foo"|truncate(2) }}',
    '{{ "foo bar"|truncate(5, leeway=-1) }}', '{{ 5|truncate }}', '{{ l|truncate(3) }}',
    '{{ "a b c d e f g h i j"|truncate(10, leeway=2, end="…") }}', '{{ "   lead"|truncate(4, leeway=0, end="") }}|',
    '{{ "one two  three"|wordcount }}{{ "don\'t stop-now é1_2"|wordcount }}{{ ""|wordcount }}{{ 15|wordcount }}{{ "日本 '
    '語"|wordcount }}{{ "e\u0301a"|wordcount }}',
    '{{ "hello world-foo (bar) it\'s éa"|title }}|{{ "HELLO wORLD"|title }}|{{ "a\tb\nc"|title }}|{{ "x{y<z[w_v/u"|'
    'title }}|{{ 5|title }}|{{ none|title }}|{{ "ǆ ß ﬁ"|title }}',
    '{{ "hELLO wORLD"|capitalize }}{{ ""|capitalize }}{{ "ßa"|capitalize }}{{ "ǆ"|capitalize }}{{ 5|capitalize }}{{ '
    'true|capitalize }}',
    '{{ s|upper }}{{ s|lower }}{{ 5|upper }}{{ none|lower }}{{ "ß"|upper }}{{ "İ"|lower }}{{ "ΑΣ"|lower }}{{ "ΑΣΑ"|'
    'lower }}{{ l|upper }}',
    '{{ "  a "|trim }}|{{ "xxaxx"|trim("x") }}{{ "[a]"|trim("[]") }}{{ "xya"|trim(chars="xy") }}{{ 5|trim }}{{ none|'
    'trim }}{{ "\u00a0a\u2028"|trim }}|{{ "\u200ba"|trim }}|{{ "\x1ca\x1f"|trim }}',
    '{{ "a"|trim(none) }}{{ " a"|trim("") }}', '{{ "a"|trim(5) }}',
    '{{ d|tojson }}', '{{ m|tojson }}', '{{ html|tojson }}', '{{ uni|tojson }}{{ uni|tojson(ensure_ascii=true) }}',
    '{{ ctl|tojson }}{{ ctl|tojson(true) }}', '{{ {"b": 1, "a": [1, {"c": 2}], "e": [], "f": {}}|tojson(indent=2) }}',
    '{{ d|tojson(indent=0) }}', '{{ d|tojson(indent="--") }}', '{{ d|tojson(indent=-1) }}{{ d|tojson(indent=true) }}',
    '{{ d|tojson(separators=(",", ":")) }}', '{{ d|tojson(separators=[";", "="], indent=1) }}',
    '{{ {"b": 1, "a": 2}|tojson(sort_keys=true) }}', '{{ {"b": 1, 1: 2}|tojson(sort_keys=true) }}',
    '{{ {1: 1, 1.5: 2, true: 3, none: 4}|tojson }}', '{{ {(1, 2): 3}|tojson }}', '{{ (1, 2)|tojson }}',
    '{{ [1.0, 1e16, 1e-7, -0.0, 1e22, 0.1]|tojson }}', '{{ [1e308 * 10, -1e308 * 10]|tojson }}',
    '{{ "inf"|float|tojson }}{{ "nan"|float|tojson }}', '{{ range(3)|tojson }}', '{{ l|map("string")|tojson }}',
    '{{ d.keys()|tojson }}', '{{ "a\\"b\\\\c/d\\n\\t\\u0007\\u2028"|tojson }}', '{{ (html|e)|tojson }}',
    '{{ true|tojson }}{{ none|tojson }}{{ 5|tojson }}{{ "x"|tojson }}', '{{ d|tojson(nope=1) }}',
    '{{ d|tojson(false, 1, none, true) }}', '{{ [[], {}, [[]], [{}]]|tojson(indent=1) }}',
    '{{ namespace(a=1)|tojson }}', '{{ users|tojson(2) }}',
    '{{ l|join }}{{ l|join(", ") }}{{ l|join(d="-") }}{{ []|join("x") }}{{ s|join(".") }}{{ d|join(",") }}{{ m|join("|'
    '") }}{{ l|join(1) }}', '{{ users|join(", ", attribute="name") }}{{ users|join("-", "addr.city") }}',
    '{{ users|join(",", attribute="tags.0") }}', '{{ 5|join }}', '{{ [html|e, html]|join(",") }}',
    '{{ [html]|join("<"|e) }}', '{{ [nope, 1]|join("-") }}',
    '{{ []|first }}|{{ []|last }}|{{ ""|first }}|{{ []|first is defined }}', '{{ []|first.x }}',
    '{{ l|first }}{{ l|last }}{{ s|first }}{{ s|last }}{{ d|first }}{{ d|last }}', '{{ 5|first }}',
    '{{ [[1, 2]]|first|first }}',
    '{{ l|min }}{{ l|max }}{{ w|min }}{{ w|max }}{{ w|min(true) }}{{ w|max(case_sensitive=true) }}{{ []|min }}|{{ '
    '"hello"|max }}{{ d|max }}',
    '{{ (users[:3]|min(attribute="age")).name }}{{ (users[:3]|max(attribute="age")).name }}{{ (users|'
    'min(attribute="name")).name }}{{ (users|max(attribute="name", case_sensitive=true)).name }}',
    '{{ users|max(attribute="addr.city") }}', '{{ m|max }}',
    '{{ [1, 1.0, true]|max }}{{ [true, 1]|min }}{{ ["a", "A"]|min }}{{ ["A", "a"]|max }}',
    '{{ "a b&c/d?é=~._-+"|urlencode }}{{ {"a b": "c&d", "e": 1}|urlencode }}{{ [("a", 1), ("b/", "c/")]|urlencode }}{{ '
    '5|urlencode }}{{ true|urlencode }}', '{{ none|urlencode }}', '{{ [1]|urlencode }}',
    '{{ "abc"|list }}{{ d|list }}{{ "é😀e\u0301"|list }}{{ range(2)|list }}{{ (1, 2)|list }}', '{{ 5|list }}',
    '{{ "abc"|reverse }}{{ l|reverse|list }}{{ d|reverse|list }}{{ "é😀"|reverse }}{{ (1, 2)|reverse|list }}',
    '{{ 5|reverse|list }}', '{{ s|length }}{{ l|count }}{{ d|length }}{{ "😀"|length }}{{ range(4)|length }}',
    '{{ 5|length }}', '{{ none|length }}', '{{ -5|abs }}{{ (-5)|abs }}{{ -2.5|abs }}{{ true|abs }}', '{{ "a"|abs }}',
    '{{ 5|string }}{{ none|string }}{{ [1]|string|length }}{{ 1.0|string }}{{ (html|e)|string is escaped }}',
    '{{ 5|e }}{{ none|e }}{{ [html]|e }}{{ html|e }}{{ html|escape|e }}{{ html|forceescape }}{{ html|e|forceescape }}'
    '{{ html|safe }}{{ html|safe|e }}{{ html|safe|forceescape }}',
    "{{ ('<a>'|e) ~ '<' }}", "{{ '<' ~ ('<a>'|e) }}", "{{ ('<a>'|e) + '<' }}", "{{ '<' + ('<a>'|e) }}",
    "{{ ('<a>'|safe) + '<' }}{{ '<'|safe ~ '<' ~ 5 }}", "{{ ('<a>'|safe) * 2 }}{{ ('<a>'|safe * 2) is escaped }}",
    "{{ ('<%s>'|safe) % '<' }}{{ ('<%s %d>'|safe) % ('<', 5) }}{{ '%s' % ('<'|e) }}{{ ('%(a)s'|safe) % {'a': '<'} }}",
    "{{ ('<{}>'|safe).format('<') }}{{ '{}'.format('<'|e) }}{{ ('{a!r}'|safe).format(a='<') }}",
    "{{ ','|safe.join(['<', '>'|safe]) }}", "{{ (','|safe).join(['<', '>'|safe]) }}",
    "{{ ('<a>'|safe).upper() is escaped }}{{ ('a<'|safe)[0] is escaped }}{{ ('a b'|safe).split()[0] is escaped }}{{ "
    "('a'|safe)|upper is escaped }}{{ ('a'|safe)|trim is escaped }}{{ ('a'|safe)|replace('a', '<') }}{{ ('a'|"
    "safe).replace('a', '<') }}",
    "{{ ('<'|e)|length }}{{ ('<'|e) == '&lt;' }}{{ ('&lt;'|safe) in ['&lt;'] }}{{ '<' in ('<'|e) }}",
    "{{ ('a'|safe)|tojson }}{{ [('a'|safe)] }}{{ {('a'|safe): 1} }}{{ {'a': 1}['a'|safe] }}",
    "{{ ('a'|safe) is string }}{{ ('a'|safe)|string is escaped }}{{ ('a' ~ 'b'|safe) is escaped }}{{ ('a'|safe ~ 'b') "
    "is escaped }}", "{{ ('<'|safe)|e is escaped }}{{ ('<'|safe)|e }}{{ '<'|e|e }}",
    "{% set b %}<{% endset %}{{ b is escaped }}{{ b|e }}", "{% filter e %}<a>{{ '<'|e }}{% endfilter %}",
    "{% macro f() %}<{% endmacro %}{{ f() is escaped }}{{ f()|e }}",
    "{{ ('a'|safe)|title is escaped }}{{ ('a'|safe)|capitalize is escaped }}{{ ('a'|safe)|center(3) is escaped }}{{ "
    "('a'|safe)|indent is escaped }}{{ ('abc'|safe)|truncate(1, true, '', 0) is escaped }}{{ ('ab'|safe)|reverse is "
    "escaped }}{{ ('ab'|safe)|first is escaped }}{{ ('a'|safe)|format is escaped }}",
    "{{ ('a'|safe)|list }}{{ ('b'|safe, 'a')|sort }}{{ ('a'|safe)|default('x') is escaped }}{{ ('<p>'|"
    "safe).partition('p') }}{{ ('a\nb'|safe).splitlines() }}", "{{ ['<', '<'|e]|join('&') }}",
    "{{ 'x'|e ~ none }}{{ 'x'|e + '\"' }}", "{{ 'x'|e + 5 }}", "{{ 5 + ('x'|e) }}", "{{ '\"\\'<>&'|e }}",
    "{{ 'a'|nosuch }}", '{% filter upper|replace("A", "b") %}aAa{% endfilter %}', '{% filter nosuch %}{% endfilter %}',
    '{% filter indent(2) %}a\nb{% endfilter %}', '{% filter length %}abc{% endfilter %}',
    '{% filter tojson %}a"{{ n }}{% endfilter %}', '{% filter list %}ab{% endfilter %}', '{% filter %}{% endfilter %}',
    '{{ "a"|upper|lower|title|trim|length|string|int }}', '{{ ["a"]|map("upper")|first|lower }}',
    '{{ ""|default("x") }}|{{ ""|default("x", true) }}', '{{ n|default(nope.x) }}',
]
EDGE_STATEMENTS = [
    '{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=1, a=2) }}{{ f() }}',
    '{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}', '{% macro f(a) %}{% endmacro %}{{ f(z=2) }}',
    '{% macro f(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ f(1, 2, 3) }}{{ f(1) }}',
    '{% macro f(a) %}{{ a }}{{ kwargs }}{% endmacro %}{{ f(1, z=2) }}{{ f() }}',
    '{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}', '{% macro f(a, a) %}{% endmacro %}',
    '{% macro f(a=1, b) %}{{ a }}{{ b }}{% endmacro %}{{ f() }}',
    '{% macro f() %}{{ varargs|length }}{{ kwargs|length }}{% endmacro %}{{ f(1, 2, z=1) }}',
    '{% macro f(x) %}{{ x }}{% if x > 0 %}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(3) }}',
    '{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}',
    '{% macro f(a) %}{{ a }}{% endmacro %}{{ f.name }}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.catch_varargs }}{{ '
    'f.caller }}', '{% macro f() %}{{ caller }}{% endmacro %}{{ f() }}|',
    '{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}',
    '{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}body{{ n }}{% endcall %}',
    '{% macro f() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b, c=3) f() %}{{ a }}{{ b }}{{ c }}{% endcall %}',
    '{% macro f() %}{{ caller(1) }}{% endmacro %}{% call f() %}x{% endcall %}',
    '{% macro f() %}{{ caller() }}{% endmacro %}{% call(u) f() %}[{{ u }}]{{ u is defined }}{% endcall %}',
    '{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}',
    '{% macro f(caller) %}{{ caller() }}{% endmacro %}{% call f() %}y{% endcall %}',
    '{% macro f(caller=none) %}{{ caller is none }}{% endmacro %}{{ f() }}',
    '{% macro f() %}{% if caller %}{{ caller() }}{% else %}no{% endif %}{% endmacro %}{{ f() }}{% call f() %}c{% '
    'endcall %}',
    '{% macro f() %}{{ caller() }}{% endmacro %}{% for i in l %}{% call f() %}{{ i }}{{ loop.index }}{% endcall %}{% '
    'endfor %}', '{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}{% call f() %}in{% endcall %}{% endcall %}',
    '{% call n() %}{% endcall %}', '{% call s.upper() %}{% endcall %}', '{% call f %}{% endcall %}',
    '{% macro f() %}{% for i in caller(l) %}{{ i }}.{% endfor %}{% endmacro %}{% call(z) f() %}{{ z|length }}{% '
    'endcall %}', '{% macro f(x) %}{{ x }}{% endmacro %}{{ l|map("string")|map("upper")|list }}{{ f(f(1)) }}',
    '{% macro f() -%} a {%- endmacro %}[{{ f() }}]', '{% macro f() %}{% endmacro %}[{{ f() }}]{{ f() is string }}',
    '{% macro f() %}{{ 1 }}{% endmacro %}{{ f() + 1 }}', '{% macro f() %}1{% endmacro %}{{ f() ~ 1 }}{{ f()|int + 1 }}',
    '{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{"a": 1, "b": 2}) }}{{ f(*[1], **{"b": 2}) '
    '}}', '{% macro f(a=[]) %}{{ a }}{% endmacro %}{{ f() }}{{ f() }}',
    '{% macro f(u=nope) %}{{ u is defined }}{% endmacro %}{{ f() }}',
    '{% macro f(n) %}{{ n }}{% endmacro %}{{ f() }}|{{ n }}',
    '{% if n == 5 %}a{% elif n == 6 %}b{% else %}c{% endif %}',
    '{% if n == 4 %}a{% elif n == 5 %}b{% elif nope.x %}d{% else %}c{% endif %}',
    '{% if 0 %}{% elif "" %}{% elif [] %}{% elif {} %}{% elif none %}{% elif 0.0 %}{% elif () %}{% else %}all false{% '
    'endif %}', '{% if [0] and {0: 0} and " " and 0.1 and (0,) and "0" %}all true{% endif %}', '{% if yes %}',
    '{% endif %}', '{% if %}{% endif %}', '{% if yes %}{% else %}{% else %}{% endif %}',
    '{% if yes %}{% for i in l %}{% endif %}{% endfor %}', '{% for i in l %}', '{% for i l %}{% endfor %}',
    '{% for in l %}{% endfor %}', '{% nosuch %}', '{% %}', '{%%}', '{% if yes }}{% endif %}', '{{ n %}', '{% set a %}',
    '{% set %}', '{% set a = %}', '{% set 1 = 2 %}', '{% set a.b.c = 2 %}', '{% elif yes %}', '{% else %}',
    '{% endset %}', '{% if yes %}x{% endif yes %}', '{% endfor %}', '{% for i in l %}{{ i }}{% endfor i %}',
    '{% print n %}', '{% do n %}', '{% macro f %}{% endmacro %}', '{% macro 1() %}{% endmacro %}',
    '{% macro f(1) %}{% endmacro %}',
    '{% with a = 1 %}{{ a }}{% endwith %}', '{% with a %}{% endwith %}', '{% with a, b = 1, 2 %}{{ a }}{% endwith %}',
    '{% with a = b, b = 1 %}{{ a }}{{ b }}{% endwith %}', '{% raw %}{{ a }}{% if %}{# c #}{% endraw %}',
    '{%- raw -%} {{ a }} {%- endraw -%} b', '{% raw %}{% endraw', '{% raw %}x', '{% endraw %}', '{%raw%}a{%endraw%}b',
    '{% raw +%}a{% endraw %}', 'a {%+ raw %} b {%+ endraw %} c', '{% raw %}\n x\n{% endraw %}\ny',
    '{# c #}a{# {{ b }} {% if %} #}', '{# unclosed', '{#- a -#} b {#- c #} d', 'a\n{# c #}\nb', 'a\n  {# c #}  \nb',
    '{#\n#}\nx', '{##}x{#-#} y{#+ c +#}\nz', '#} x', '}} %} x', '{ { n } }', '{{ n }}}', '{{{ n }}}', '{ {{ n }} }',
    '{%-%}', "{{ '{#' }}", '{# }} #}x', '{{ n {# c #} }}', '{{ n # c }}', '# for i in l\n{{ n }}', '## c\n{{ n }}',
    '{{-n-}}', '{{- n -}} x', 'x {{- n -}} y', 'x\n\n{{- n -}}\n\n y', '{{+n}}', '{{ n +}}', '{{--n}}', '{{- -n }}',
    '{{ n-}}', 'a {%- if yes -%} b {%- endif -%} c',
    '  {% if yes %}\n  x\n  {% endif %}\ny', '\t{% if yes %}\t\nx\n\t{% endif %}\n',
    '  {%+ if yes %}\nx\n  {%+ endif %}', '{% if yes +%}\nx\n{% endif +%}\ny', 'a  {% if yes %}b{% endif %}',
    'a\n  {% if yes %}b{% endif %}\n c', '  {{ n }}\n  {{ n }}\n', '  {# c #}\n  x',
    '{% if yes %}\n\nx\n\n{% endif %}\n\n', '{% if yes %} \nx{% endif %}',
    'a\r\n  {% if yes %}\r\nx\r\n  {% endif %}\r\nb\r\n', '  {% set a = 1 %}\n{{ a }}',
    '\u00a0{% if yes %}x{% endif %}', '\u2028  {% if yes %}x{% endif %}', 'x\x0b  {% if yes %}y{% endif %}',
    '\x0c{% if yes %}y{% endif %}', ' {%- if yes %}\nx{% endif -%} \n ',
    '  {% if yes %}  {% if yes %}\nx{% endif %}  {% endif %}\n', '  {% raw %}\n a{% endraw %}\n',
    '{% for i in l %}\n{{ i }}\n{% endfor %}\n', '{% for i in l %}\n  {{ i }}\n{%- endfor %}', '\n{{ n }}\n\n', 'a\n',
    'a\n\n', 'a\r\n', 'a\r', '\n', '', ' ', '\n\n', 'a \n', '{{ n }}\n', '{% if yes %}a{% endif %}\n', '{# c #}\n',
    'a\n{#- c -#}\n b', '{{ "x" -}}\u00a0\u2003 y', 'a\u2028{{- n }}', 'a\x1c{{- n }}',
    'a\x85 {%- if yes %}b{% endif %}', '  {#- c #}  {#+ d #}', '  {#+ c #}\n x', '   {%\nif\nyes\n%}x{%\tendif\t%}',
    '{{\nn\n}}', '{{\n"a"\n~\n"b"\n}}', '{% set a = [\n 1,\n 2\n] %}{{ a }}', '{% for i in\nl %}{{ i }}{% endfor %}',
    'é{{ n }}日\n{% if yes %}\n😀{% endif %}', 'x\n\t  {%- if yes -%}\n\n y{% endif %}', '{% if yes -%}\n\n{%- endif %}z',
    'a{% if yes %}\r\n\nb{% endif %}', 'a{{ n }}\nb', 'a{% if yes %}\n\n b{% endif %}\n\nc',
    '<p>\n  {%- for i in l %}\n  {{ i }}\n  {%- endfor %}\n</p>',
    '{{ raise_exception("bad " ~ n) }}', '{% if no %}{{ raise_exception("x") }}{% endif %}ok',
    '{{ raise_exception() }}', '{{ raise_exception(5) }}', '{{ raise_exception("é\\n") }}',
    '{{ raise_exception(message="m") }}', '{{ raise_exception(nope) }}', '{{ raise_exception(none) }}',
    '{{ raise_exception([1, "a"]) }}', 'text {{ raise_exception("after") }} text',
    '{% macro f() %}{{ raise_exception("in macro") }}{% endmacro %}{{ f() }}', '{{ n or raise_exception("no") }}',
    '{{ raise_exception("a") ~ raise_exception("b") }}', '{{ strftime_now("%d %b %Y") }}',
    '{{ strftime_now("%Y-%m-%dT%H:%M:%S") }}', '{{ strftime_now("%A %a %B %b %d %-d %e %j %U %W %V %G %u %w %y %C") }}',
    '{{ strftime_now("%I %-I %p %M %S %f %H %k %l") }}',
    '{{ strftime_now("[%z] [%Z] %% %n%t| %c | %x | %X | %D | %F | %T | %R | %r | %h") }}', '{{ strftime_now("%s") }}',
    '{{ strftime_now("") }}|', '{{ strftime_now("é %Y 日") }}', '{{ strftime_now() }}', '{{ strftime_now(5) }}',
    '{{ strftime_now(format="%Y") }}',
    '{{ strftime_now is defined }}{{ raise_exception is defined }}{{ strftime_now is callable }}',
    '{{ strftime_now("%E") }}', '{{ strftime_now("%") }}', '{{ strftime_now("%P %_d %^a %5d %05d") }}',
    '{{ strftime_now("%Q") }}',
    '{{ messages }}|{{ users|map(attribute="name")|list|tojson }}',
    '{{ [1, 2, 3][1] }}{{ "abc"[1] }}{{ (1, 2)[0] }}{{ {"a": 1}["a"] }}{{ [[1]][0][0] }}',
    '{{ "abc".upper()[0] }}{{ [1, 2].count(1) }}{{ {}.get("a", 1) }}{{ {"a": 1}.keys()|list }}',
    '{% set d2 = dict(d, b=9) %}{{ d2 }}{{ d }}', '{% set l2 = l + [4] %}{{ l2 }}{{ l }}', '{% set _ = l.append(4) %}',
    '{{ context is defined }}{{ request is defined }}{{ cycler is defined }}{{ joiner is defined '
    '}}{{ namespace is defined }}', '{% set x = namespace(a=[]) %}{{ x.a.append(1) }}',
    '{% set ns = namespace(l=[]) %}{% for i in l %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.l }}',
    '{% set ns = namespace(d={}) %}{% set ns.d = dict(ns.d, a=1) %}{{ ns.d }}', '{% set a = namespace %}{{ a(x=1).x }}',
    '{{ namespace(1) }}', '{{ namespace([("a", 1)]).a }}{{ namespace(a=1)["a"] }}',
    '{% set ns = namespace(a=1) %}{% set b = ns %}{% set b.a = 2 %}{{ ns.a }}',
]
EDGE_OWN = [
    ('{{ v }}{{ [v] }}{{ v|tojson }}', {'v': value}) for value in (
        0, -1, 9223372036854775807, -9223372036854775808, 0.0, -0.0, 1e16, 1e15, 123456789012345680.0, 0.0001, 0.00001,
        1e-7, 1.5, 2 / 3, 1e100, 5e-324, True, None,
        '', "it's", '"', '\'"', '\\', '\n', '\u2028\xa0\x7f\x80', '😀é', '\ud7ff\ue000\uffff', [], {}, [[]],
        {'a': {'b': [None, True, 1.5]}}, {'': ''}, {"'": '"'}, [1, [2, [3, [4]]]])]
EDGE_OWN += [
    ('{{ items }}{{ items.x }}{{ items["x"] }}', {'items': {'x': 1}}), ('{{ d.items is string }}{{ d["items"] }}',
            {'d': {'items': [1]}}), ('{{ range }}{{ dict }}', {'range': 1, 'dict': 2}), ('{{ raise_exception }}',
                    {'raise_exception': 'data'}),
    ('{{ namespace }}', {'namespace': 3}), ('{{ true }}{{ none }}', {'true': 0, 'none': 1}),
    ('{{ loop }}{% for i in [1] %}{{ loop.index }}{% endfor %}', {'loop': 'L'}),
    ('{{ caller }}{% macro f() %}{{ caller }}{% endmacro %}{{ f() }}', {'caller': 'C'}),
    ('{{ varargs }}{% macro f() %}{{ varargs }}{% endmacro %}{{ f() }}', {'varargs': 'V'}),
    ('{% for m in messages %}{{ m["role"] }}{{ m.content|trim }}{% if not loop.last %}|{% endif %}{% endfor %}',
     {'messages': [{'role': 'user', 'content': ' hi '}, {'role': 'assistant', 'content': 'yo\n'}]}),
     ('{{ messages[0].content + eos }}', {'messages': [{'content': 'a'}]}), ('{{ messages[-1]["role"] == "user" }}',
             {'messages': []}), ('{{ messages|selectattr("role", "equalto", "user")|list|last }}',
                                 {'messages': [{'role': 'user', 'n': 1}, {'role': 'user', 'n': 2}]}),
    ('{% set c = m.content %}{% if c is string %}{{ c }}{% else %}{% for p in c %}{{ p.text if p.type == "text" else '
     '"<" ~ p.type ~ ">" }}{% endfor %}{% endif %}', {'m': {'content': [{'type': 'text', 'text': 'a'},
             {'type': 'image'}]}}), ('{{ s.split("</think>")[-1].lstrip("\\n") }}',
                                     {'s': '<think>\nx\n</think>\n\nanswer'}), ('{{ e|e }}{{ d|d }}',
                                             {'e': '<', 'd': '>'}), ('{{ 五 }}{{ Ω }}', {'五': 5, 'Ω': 6}),
                                             ('{{ x.y["z"].w }}', {'x': {'y': {'z': {'w': 'deep'}}}}),
    ('{{ a == b }}{{ a is sameas b }}{{ a != b }}', {'a': {'k': [1]}, 'b': {'k': [1]}}), ('{{ t|tojson(indent=4) }}',
            {'t': {'type': 'function', 'function': {'name': 'f', 'parameters': {'type': 'object', 'properties': {},
                    'required': []}}}}), ('{{ v|tojson }}|{{ v }}', {'v': {'é': '\u2028</script>', 'n': [1e-7, 1e16,
                            10**15]}}),
]
EDGE_CASES = [(text, mentioned(SHARED, text)) for group in (EDGE_SCOPES, EDGE_LOOPS, EDGE_UNDEFINED, EDGE_EXPRESSIONS,
        EDGE_FILTERS, EDGE_STATEMENTS) for text in group] + EDGE_OWN


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=10)
    parser.add_argument('--edge', action='store_true')
    args = parser.parse_args()
    for template, context in EDGE_CASES if args.edge else programs(args.seed, args.count):
        print(json.dumps({'template': template, 'context': context}))
    return 0


if __name__ == '__main__':
    sys.exit(main())
