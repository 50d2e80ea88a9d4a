// Answers as paragraphs, lists, code and tables. Markup that is not understood stays text, and so does all HTML. A text
// that still grows is drawn anew from the first block that changed.
import {element} from './dom';

/** Longer texts are shown as they are. */
const kMostCharacters = 200_000;
/** Quotes and lists within each other. */
const kMostDepth = 8;
/** An unclosed mark is searched for its end up to here, so that time stays linear. */
const kMostInline = 2000;

/** Characters that reorder the text around them: an answer must not show words in another order than it has them. */
const kReordering = /([\u202a-\u202e\u2066-\u2069])/;

export function addText(into: Node, text: string): void {
  text.split(kReordering).forEach((part, i) => {
    if (part === '') return;
    if (i % 2 === 0) return void into.appendChild(document.createTextNode(part));
    const code = `U+${part.charCodeAt(0).toString(16).toUpperCase()}`;
    into.appendChild(element('span', {class: 'invisible', title: 'changes the direction of text'}, code));
  });
}

// ---- within a line -----------------------------------------------------------------------------------------------------

type Mark = {tag: 'code' | 'strong' | 'em' | 'del', pattern: RegExp, nests: boolean};
const kMarks: Mark[] = [
  {tag: 'code', pattern: /^(`{1,3})(?!`)([^]*?[^`])\1(?!`)/, nests: false},
  {tag: 'strong', pattern: /^(\*\*)(?=\S)([^\n]*?\S)\*\*/, nests: true},
  {tag: 'em', pattern: /^(\*)(?=[^\s*])([^*\n]*?[^\s*])\*(?!\*)/, nests: true},
  {tag: 'em', pattern: /^(_)(?=[^\s_])([^_\n]*?[^\s_])_(?![\p{L}\p{N}_])/u, nests: true},
  {tag: 'del', pattern: /^(~~)(?=\S)([^~\n]*?\S)~~/, nests: true},
];
const kLink = /^\[([^\]\n]{1,500})\]\((https?:\/\/[^\s()<>"]{1,2000})\)/;
const kStarts = '`*_~[';

function markAt(text: string, i: number): {node: Node, length: number} | undefined {
  if (!kStarts.includes(text[i]!)) return undefined;
  if (text[i] === '_' && i > 0 && /[\p{L}\p{N}_]/u.test(text[i - 1]!)) return undefined;
  const rest = text.slice(i, i + kMostInline);
  const link = kLink.exec(rest);
  if (link) {
    const node = element('a', {attributes: {href: link[2]!, target: '_blank', rel: 'noopener noreferrer'}});
    addText(node, link[1]!);
    return {node, length: link[0].length};
  }
  for (const mark of kMarks) {
    const found = mark.pattern.exec(rest);
    if (!found) continue;
    const node = element(mark.tag);
    if (mark.nests) addInline(node, found[2]!);
    else addText(node, found[2]!);
    return {node, length: found[0].length};
  }
  return undefined;
}

function addInline(into: Node, text: string): void {
  let from = 0;
  for (let i = 0; i < text.length;) {
    const found = markAt(text, i);
    if (!found) {
      ++i;
      continue;
    }
    addText(into, text.slice(from, i));
    into.appendChild(found.node);
    i = from = i + found.length;
  }
  addText(into, text.slice(from));
}

// ---- blocks ------------------------------------------------------------------------------------------------------------

type Kind = 'code' | 'heading' | 'rule' | 'quote' | 'list' | 'table' | 'paragraph';
interface Block {
  kind: Kind;
  lines: string[];
}

const kFence = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const kItem = /^( *)([-*+]|\d{1,9}[.)])( +)/;
const kDivider = /^ *\|?( *:?-+:? *\|)+ *(:?-+:? *)?$/;

function kindOf(line: string, next: string | undefined): Kind {
  if (kFence.test(line)) return 'code';
  if (/^#{1,6} /.test(line)) return 'heading';
  if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line)) return 'rule';
  if (/^ {0,3}>/.test(line)) return 'quote';
  if (kItem.test(line)) return 'list';
  if (line.includes('|') && next !== undefined && kDivider.test(next)) return 'table';
  return 'paragraph';
}

/** The number of lines of the block that begins at `from`. */
function lengthOf(kind: Kind, lines: string[], from: number): number {
  const rest = (stops: (line: string, i: number) => boolean) => {
    let i = from + 1;
    while (i < lines.length && !stops(lines[i]!, i)) ++i;
    return i - from;
  };
  switch (kind) {
    case 'code': {
      const fence = kFence.exec(lines[from]!)![1]!;
      const length = rest((line) => line.trim().startsWith(fence) && line.trim().replaceAll(fence[0]!, '') === '');
      return Math.min(length + 1, lines.length - from);
    }
    case 'heading':
    case 'rule':
      return 1;
    case 'quote':
      return rest((line) => !/^ {0,3}>/.test(line));
    case 'list':
      return rest((line, i) => line.trim() === '' ? !/^ |^([-*+]|\d{1,9}[.)]) /.test(lines[i + 1] ?? '')
                                                  : !/^ /.test(line) && kindOf(line, undefined) !== 'list' && lines[i - 1]!.trim() === '');
    case 'table':
      return rest((line) => !line.includes('|'));
    case 'paragraph':
      return rest((line, i) => line.trim() === '' || kindOf(line, lines[i + 1]) !== 'paragraph');
  }
}

function blocksOf(text: string): Block[] {
  const lines = text.split('\n');
  const blocks: Block[] = [];
  for (let i = 0; i < lines.length;) {
    if (lines[i]!.trim() === '') {
      ++i;
      continue;
    }
    const kind = kindOf(lines[i]!, lines[i + 1]);
    const length = lengthOf(kind, lines, i);
    blocks.push({kind, lines: lines.slice(i, i + length)});
    i += length;
  }
  return blocks;
}

function codeBlock(lines: string[]): HTMLElement {
  const language = kFence.exec(lines[0]!)![2]!.trim();
  const closed = lines.length > 1 && kFence.test(lines.at(-1)!);
  const code = element('code');
  addText(code, lines.slice(1, closed ? -1 : undefined).join('\n'));
  const label = language ? `code, ${language.slice(0, 40)}` : 'code';
  return element('pre', {attributes: {tabindex: 0, role: 'region', 'aria-label': label}}, code);
}

function list(lines: string[], depth: number): HTMLElement {
  const first = kItem.exec(lines[0]!)!;
  const indent = first[1]!.length;
  const ordered = /\d/.test(first[2]!);
  const made = element(ordered ? 'ol' : 'ul');
  if (ordered) made.setAttribute('start', String(parseInt(first[2]!, 10)));
  const items: string[][] = [];
  for (const line of lines) {
    const item = kItem.exec(line);
    if (item && item[1]!.length <= indent) items.push([line.slice(item[0].length)]);
    else items.at(-1)!.push(line.replace(/^ {1,4}/, ''));
  }
  for (const item of items) {
    const child = element('li', {attributes: {dir: 'auto'}});
    addInline(child, item[0]!);
    if (item.length > 1) addBlocks(child, item.slice(1).join('\n'), depth + 1);
    made.append(child);
  }
  return made;
}

function table(lines: string[]): HTMLElement {
  const cells = (line: string) => line.trim().replace(/^\||\|$/g, '').split('|');
  const row = (line: string, tag: 'th' | 'td') => {
    const made = element('tr');
    for (const text of cells(line)) {
      const cell = element(tag, {attributes: {dir: 'auto'}});
      addInline(cell, text.trim());
      made.append(cell);
    }
    return made;
  };
  return element('div', {class: 'table', attributes: {tabindex: 0, role: 'region', 'aria-label': 'table'}},
    element('table', {}, element('thead', {}, row(lines[0]!, 'th')),
      element('tbody', {}, ...lines.slice(2).map((line) => row(line, 'td')))));
}

function draw(block: Block, depth: number): HTMLElement {
  const {kind, lines} = block;
  const text = lines.join('\n');
  if (kind === 'code') return codeBlock(lines);
  if (kind === 'rule') return element('hr');
  if (kind === 'table') return table(lines);
  if (kind === 'list' && depth < kMostDepth) return list(lines, depth);
  if (kind === 'quote' && depth < kMostDepth) {
    const quote = element('blockquote');
    addBlocks(quote, lines.map((line) => line.replace(/^ {0,3}> ?/, '')).join('\n'), depth + 1);
    return quote;
  }
  // Headings of an answer stand below those of the page.
  const level = kind === 'heading' ? Math.min(6, 3 + lines[0]!.indexOf(' ')) as 4 | 5 | 6 : 0;
  const made = element(level ? `h${level}` as const : 'p', {attributes: {dir: 'auto'}});
  addInline(made, level ? text.replace(/^#+ /, '') : text);
  return made;
}

function addBlocks(into: Node, text: string, depth: number): void {
  for (const block of blocksOf(text)) into.appendChild(draw(block, depth));
}

/** A text that is drawn again as it grows. */
export class Markdown {
  readonly node = element('div', {class: 'markdown'});
  private drawn: string[] = [];

  update(text: string): void {
    const plain = text.length > kMostCharacters;
    const blocks: Block[] = plain ? [{kind: 'paragraph', lines: [text]}] : blocksOf(text);
    const sources = blocks.map((block) => `${plain ? 'plain' : block.kind}\n${block.lines.join('\n')}`);
    let same = 0;
    while (same < sources.length && sources[same] === this.drawn[same]) ++same;
    while (this.node.childNodes.length > same) this.node.lastChild!.remove();
    for (const block of blocks.slice(same)) {
      if (plain) addText(this.node.appendChild(element('p', {class: 'plain', attributes: {dir: 'auto'}})), text);
      else this.node.append(draw(block, 0));
    }
    this.drawn = sources;
  }
}
