"""Checks that names of model families occur in src/arch/families only: families differ in fields of Family, GgufNames
or TensorSpec, and no other source tests for a family's name. Tests may.

usage: check_families.py [ROOT]
"""
import os
import re
import sys

FAMILIES = 'src/arch/families'
# Names and aliases of a family, and constants that hold one.
DECLARED = re.compile(r'(?:\.name = |\.arch = |kAliases\{|k[A-Z]\w* = )"([^"]+)"|kAliases\{"[^"]+", "([^"]+)"')
NOT_A_NAME = re.compile(r'\.')                   # "wpe.weight"
SOURCE = re.compile(r'\.(h|cc)$')
# The same words with another meaning, or in a file's own texts.
EXCEPTIONS = {
    ('src/token/files/gguf_vocab.h', 'llama'): 'a kind of tokenizer, as GGUF spells it',
    ('src/token/files/gguf_vocab.h', 'gpt2'): 'a kind of tokenizer, as GGUF spells it',
    ('src/token/files/gguf_pre.cc', 'qwen2'): 'a pre-tokenizer, as GGUF spells it',
    ('src/token/files/gguf_pre.cc', 'exaone4'): 'a pre-tokenizer, as GGUF spells it',
    ('src/token/files/gguf_pre.cc', 'glm4'): 'a pre-tokenizer, as GGUF spells it',
    ('src/token/files/gguf_pre.cc', 'hunyuan'): 'a pre-tokenizer, as GGUF spells it',
    ('src/token/files/gguf_pre.cc', 'command-r'): 'a pre-tokenizer, as GGUF spells it',
    ('src/token/files/gguf_pre.cc', 'hunyuan-dense'): 'a pre-tokenizer, as GGUF spells it',
    ('src/chat/formats/deepseek.cc', 'deepseek'): 'how calls of tools are written',
    ('src/chat/formats/gemma.cc', 'gemma'): 'how calls of tools are written',
    ('src/chat/formats/mistral.cc', 'mistral'): 'how calls of tools are written',
    ('src/format/llama2c.cc', 'llama'): 'the files of llama2.c are read as the folder of a Llama',
    ('src/lab/synth_content.cc', 'llama'): 'the text of a config.json',
    ('src/lab/synth_content.cc', 'gpt2'): 'the text of a config.json, and what people ask for',
}


def sources(root):
    for folder in ('src', 'include'):
        for at, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if SOURCE.search(name) and not name.endswith('_test.cc'):
                    yield os.path.relpath(os.path.join(at, name), root)


def text_of(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def declared_names(root):
    names = set()
    for path in sources(root):
        if path.startswith(FAMILIES + '/'):
            for found in DECLARED.finditer(text_of(root, path)):
                names.update(name for name in found.groups() if name and not NOT_A_NAME.search(name))
    return names


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    names = declared_names(root)
    literal = re.compile('"(' + '|'.join(sorted(map(re.escape, names))) + ')"')
    problems, used, count = [], set(), 0
    for path in sources(root):
        if path.startswith(FAMILIES + '/'):
            continue
        count += 1
        for number, line in enumerate(text_of(root, path).splitlines(), 1):
            for found in literal.finditer(line.split('//')[0]):
                place = (path, found.group(1))
                used.add(place)
                if place not in EXCEPTIONS:
                    problems.append(f'{path}:{number}: {found.group(0)} is a family\'s name (try: a field of Family or '
                                    f'GgufNames, which {FAMILIES} fills)')
    problems += [f'check_families.py: the exception {place} is not needed' for place in sorted(set(EXCEPTIONS) - used)]
    print('\n'.join(problems) if problems else
          f'check_families.py: {count} files name none of {", ".join(sorted(names))}')
    return 1 if problems or not names else 0


if __name__ == '__main__':
    sys.exit(main())
