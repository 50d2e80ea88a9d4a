// The prefix tree as an icicle: from left to right the tokens, a rectangle an edge, as wide as its tokens.
import {byId, element} from '../dom';
import {plural, seconds} from '../format';
import {addText} from '../markdown';
import {type CacheState, placed, type Placed, textOf} from './state';

const kRow = 24;
/** More leaves than a reader looks at; the latest used are drawn. */
const kMostRows = 60;

export class Icicle {
  private readonly node = byId('icicle');
  private readonly details = byId('icicle-details');
  private readonly shown = new Map<number, {button: HTMLButtonElement, drawn: string}>();
  private chosen = 0;

  /** `pick` is called with the requests of the node that the reader has clicked. */
  constructor(private readonly pick: (requests: number[]) => void) {}

  update(state: CacheState): void {
    const all = placed(state.nodes);
    const drawn = all.filter(({row}) => row < kMostRows);
    const longest = Math.max(1, ...drawn.map(({node}) => node.depth + node.tokens));
    for (const [id, {button}] of this.shown) {
      if (state.nodes.has(id) && drawn.some(({node}) => node.id === id)) continue;
      button.remove();
      this.shown.delete(id);
    }
    for (const each of drawn) this.place(state, each, longest);
    const rows = Math.max(0, ...drawn.map(({row, rows}) => Math.min(row + rows, kMostRows)));
    this.node.style.height = `${rows * kRow}px`;
    byId('icicle-scale').textContent = drawn.length === 0 ? 'The prefix tree is empty: no text is stored yet.'
      : `${plural(state.nodes.size, 'edge')}; the whole width is ${plural(longest, 'token')}` +
        (drawn.length < all.length ? `; ${plural(all.length - drawn.length, 'edge')} used longer ago not drawn` : '');
    if (this.chosen) this.tell(state);
  }

  private place(state: CacheState, {node, row, rows}: Placed, longest: number): void {
    const age = Math.max(0, state.time - node.used_s);
    const step = age < 2 ? 0 : age < 10 ? 1 : age < 60 ? 2 : 3;
    const text = node.text ?? (node.mine ? '' : 'text of another key');
    const drawn = [row, rows, node.depth, node.tokens, longest, step, text].join('|');
    let found = this.shown.get(node.id);
    if (found?.drawn === drawn) return;
    if (!found) {
      const button = element('button', {type: 'button', on: {click: () => this.choose(state, node.id), focus: () => this.choose(state, node.id)}});
      found = {button, drawn};
      this.shown.set(node.id, found);
      this.node.append(button);
    }
    found.drawn = drawn;
    const {button} = found;
    button.className = `edge age-${step}`;
    button.dataset['tokens'] = String(node.tokens);
    button.style.left = `${node.depth / longest * 100}%`;
    button.style.width = `${node.tokens / longest * 100}%`;
    button.style.top = `${row * kRow}px`;
    button.style.height = `${rows * kRow}px`;
    button.title = `${text}\n${plural(node.tokens, 'token')}, used ${seconds(age)} ago`;
    button.setAttribute('aria-label', `${plural(node.tokens, 'token')} from ${node.depth} on: ${text.slice(0, 100)}`);
    button.replaceChildren();
    addText(button, text.replaceAll('\n', ' ').slice(0, 200));
  }

  private choose(state: CacheState, id: number): void {
    this.chosen = id;
    this.tell(state);
    this.pick(state.nodes.get(id)?.requests ?? []);
  }

  private tell(state: CacheState): void {
    const node = state.nodes.get(this.chosen);
    if (!node) {
      this.details.textContent = 'This edge is no longer in the tree.';
      this.chosen = 0;
      return;
    }
    const requests = node.requests ?? [];
    const users = requests.length ? `Used by ${requests.length === 1 ? 'request' : 'requests'} ${requests.join(', ')}. ` : '';
    const pre = element('pre', {class: 'wrap', attributes: {dir: 'auto'}});
    addText(pre, textOf(state.nodes, node.id));
    this.details.replaceChildren(
      element('p', {}, `${plural(node.tokens, 'token')} from position ${node.depth} on, used ${seconds(Math.max(0, state.time - node.used_s))} ago. ${users}`), pre);
  }
}
