// The pool as a grid: a cell a block. Only cells that changed are drawn again.
import {byId, element} from '../dom';
import {count, plural} from '../format';
import {blockColour, colour} from './colours';
import type {CacheState} from './state';

const kFlashMs = 700;

export class Grid {
  private readonly canvas = byId<HTMLCanvasElement>('grid');
  private readonly context = this.canvas.getContext('2d', {alpha: false})!;
  private readonly details = byId('grid-details');
  private state?: CacheState;
  private cell = 14;
  private columns = 1;
  private shown = 0;
  private cursor = -1;
  private flashing = new Map<number, {until: number, colour: string}>();
  private readonly still = matchMedia('(prefers-reduced-motion: reduce)');

  constructor() {
    new ResizeObserver(() => this.drawAll()).observe(this.canvas.parentElement!);
    this.canvas.addEventListener('pointermove', (event) => this.point(this.at(event.offsetX, event.offsetY)));
    this.canvas.addEventListener('pointerleave', () => this.point(-1));
    this.canvas.addEventListener('keydown', (event) => {
      const steps: Record<string, number> = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns};
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      this.point(Math.min(Math.max(this.cursor + step, 0), this.shown - 1));
    });
  }

  /** Draws what has changed since the last time. */
  update(state: CacheState): void {
    const isNew = state !== this.state;
    this.state = state;
    if (isNew || state.cells() > this.shown) this.drawAll();
    const until = performance.now() + kFlashMs;
    for (const id of state.copied) this.flashing.set(id, {until, colour: colour('flash-copied')});
    for (const id of state.evicted) this.flashing.set(id, {until, colour: colour('flash-evicted')});
    for (const id of state.changedBlocks) this.draw(id);
    this.flash();
    if (this.cursor >= 0) this.tell();
    this.label();
  }

  drawAll(): void {
    if (!this.state) return;
    const width = this.canvas.parentElement!.clientWidth;
    if (width === 0) return;
    this.shown = this.state.cells();
    // Large cells for few blocks, small ones for many: at most 40 rows while cells stay visible.
    this.cell = [22, 18, 14, 11, 9, 7].find((size) => this.shown / Math.floor(width / size) <= 16) ?? 6;
    this.columns = Math.max(1, Math.floor(width / this.cell));
    const rows = Math.max(1, Math.ceil(this.shown / this.columns));
    const scale = devicePixelRatio;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(rows * this.cell * scale);
    this.canvas.style.height = `${rows * this.cell}px`;
    this.context.scale(scale, scale);
    this.context.fillStyle = colour('panel');
    this.context.fillRect(0, 0, width, rows * this.cell);
    for (let id = 0; id < this.shown; ++id) this.draw(id);
  }

  /** The colour of each cell, for who wants to compare the picture with its numbers. */
  kinds(): Record<string, number> {
    const kinds: Record<string, number> = {sequence: 0, shared: 0, prefix: 0, waiting: 0, free: this.shown};
    for (const block of this.state?.blocks.values() ?? []) {
      ++kinds[this.state!.kindOf(block)]!;
      --kinds['free']!;
    }
    return kinds;
  }

  private at(x: number, y: number): number {
    const id = Math.floor(y / this.cell) * this.columns + Math.floor(x / this.cell);
    return x < this.columns * this.cell && id < this.shown ? id : -1;
  }

  private draw(id: number, over?: string): void {
    const {context, cell, state} = this;
    if (!state || id >= this.shown) return;
    const x = id % this.columns * cell, y = Math.floor(id / this.columns) * cell, size = cell - (cell > 8 ? 2 : 1);
    const block = state.blocks.get(id);
    context.fillStyle = colour('panel');
    context.fillRect(x, y, cell, cell);
    context.fillStyle = over ?? (block ? blockColour(state, block) : colour('free'));
    context.fillRect(x, y, size, size);
    const holders = block ? block.sequences.length + (block.stored ? 1 : 0) : 0;
    if (holders > 1 && cell >= 11) {
      context.fillStyle = colour('on-shared');
      context.font = `${cell - 6}px system-ui, sans-serif`;
      context.textAlign = 'center';
      context.textBaseline = 'middle';
      context.fillText(holders > 9 ? '+' : String(holders), x + size / 2, y + size / 2 + 0.5);
    }
    if (id === this.cursor) {
      context.strokeStyle = colour('text');
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, size - 2, size - 2);
    }
  }

  /** Copies and evictions flash for a moment; for readers who want no motion they stand out without fading away. */
  private flash(): void {
    const now = performance.now();
    for (const [id, {until, colour: bright}] of this.flashing) {
      if (now < until) {
        this.draw(id, bright);
        continue;
      }
      this.flashing.delete(id);
      this.draw(id);
    }
    if (this.flashing.size > 0) setTimeout(() => this.flash(), this.still.matches ? kFlashMs : 120);
  }

  private point(id: number): void {
    const before = this.cursor;
    this.cursor = id;
    if (before >= 0) this.draw(before);
    if (id >= 0) this.draw(id);
    this.tell();
  }

  /** Says in words who holds the block under the cursor. */
  private tell(): void {
    const text = this.cursor < 0 ? 'Point at a cell, or use the arrow keys, to see who holds it.' : this.describe(this.cursor);
    if (this.details.textContent !== text) this.details.replaceChildren(element('span', {}, text));
  }

  private describe(id: number): string {
    const block = this.state?.blocks.get(id);
    if (!block) return `Block ${id}: free`;
    const holders = block.sequences.map((each) => {
      const sequence = this.state!.sequences.get(each);
      return sequence ? `request ${sequence.request}${sequence.choice ? `, choice ${sequence.choice}` : ''}` : `sequence ${each}`;
    });
    if (block.stored) holders.push('the prefix tree');
    return `Block ${id}: held by ${holders.join(' and ')}`;
  }

  private label(): void {
    const kinds = this.kinds();
    const label = `${plural(this.shown, 'block')}: ${count(kinds['sequence']!)} of one sequence, ${count(kinds['shared']!)} shared, ` +
      `${count(kinds['prefix']!)} of the prefix tree, ${count(kinds['waiting']!)} of waiting sequences, ${count(kinds['free']!)} free`;
    this.canvas.setAttribute('aria-label', label);
    for (const [kind, number] of Object.entries(kinds)) byId(`count-${kind}`).textContent = count(number);
  }
}
