// The cache, live or from a trace: gets events, and has each picture draw what changed.
import {eventsOf, request} from '../api';
import {byId, element, pickFile} from '../dom';
import {bytes, count} from '../format';
import {Bars} from './bars';
import {forgetColours} from './colours';
import {Grid} from './grid';
import {Icicle} from './icicle';
import {Player} from './player';
import {Plots} from './plots';
import {type CacheEvent, CacheState} from './state';
import {Trace} from './trace';

const kFirstRetryMs = 500, kLastRetryMs = 10_000;

export class CacheView {
  private state = new CacheState();
  private readonly grid = new Grid();
  private readonly icicle = new Icicle((requests) => {
    this.picked = new Set(requests);
    this.draw();
  });
  private readonly bars = new Bars();
  private readonly plots = new Plots();
  private readonly player = new Player(() => this.draw(), () => this.closeTrace());
  private readonly facts = new Map<string, HTMLElement>();
  private picked = new Set<number>();
  private trace?: Trace | undefined;
  private watching?: AbortController | undefined;
  private frame = 0;

  /** `isServed`: a server gave this page. `isShown`: the reader sees this view. */
  constructor(private readonly isServed: boolean, private readonly isShown: () => boolean, private readonly model: () => string) {
    byId('open-trace').addEventListener('click', () => pickFile('.jsonl,.json,.txt', (text, name) => this.openTrace(text, name)));
    document.addEventListener('visibilitychange', () => this.shownOrHidden());
    this.tell(isServed ? '' : 'No server: open a trace to see one.');
  }

  /** Watches while the reader sees this view, and only then: a server that nobody watches does no work for it. */
  shownOrHidden(): void {
    const wanted = this.isServed && !this.trace && this.isShown() && document.visibilityState === 'visible';
    if (wanted && !this.watching) void this.watch();
    if (!wanted) this.stopWatching();
    if (this.isShown()) this.grid.drawAll();
  }

  restyle(): void {
    forgetColours();
    this.plots.restyle();
    this.grid.drawAll();
    this.draw();
  }

  openTrace(text: string, name: string): void {
    try {
      this.trace = Trace.parse(text);
    } catch (error) {
      return this.tell((error as Error).message);
    }
    this.stopWatching();
    this.state = this.trace.state;
    this.tell('');
    this.player.play(this.trace, name);
  }

  /** The numbers behind the picture, for tests. */
  numbers(): object {
    return {kinds: this.grid.kinds(), counters: this.state.counters, time: this.state.time, totals: this.state.totals};
  }

  private closeTrace(): void {
    this.trace = undefined;
    this.state = new CacheState();
    this.draw();
    this.shownOrHidden();
  }

  private stopWatching(): void {
    this.watching?.abort();
    this.watching = undefined;
  }

  private async watch(): Promise<void> {
    const abort = this.watching = new AbortController();
    for (let wait = kFirstRetryMs; !abort.signal.aborted; wait = Math.min(wait * 2, kLastRetryMs)) {
      try {
        const response = await request(`/v1/cache/events?model=${encodeURIComponent(this.model())}`, undefined, abort.signal);
        this.state = new CacheState();
        this.tell('');
        for await (const data of eventsOf(response)) {
          this.state.apply(JSON.parse(data) as CacheEvent);
          this.draw();
          wait = kFirstRetryMs;
        }
      } catch (error) {
        if (!abort.signal.aborted) this.tell((error as Error).message);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  private draw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const {state} = this;
      this.grid.update(state);
      state.clearChanges();
      this.icicle.update(state);
      this.bars.update(state, this.picked);
      this.plots.update(state);
      this.drawSummary();
    });
  }

  private drawSummary(): void {
    const {facts, counters, totals} = this.state;
    const prompt = counters.reused + counters.computed;
    const shown = [
      ['model', facts.model], ['layout', facts.layout],
      ['block', facts.block_bytes ? `${facts.block_positions} positions, ${bytes(facts.block_bytes)}` : ''],
      ['KV', bytes(counters.bytes.kv)], ['weights', bytes(counters.bytes.weights)],
      ['running', count(counters.running)], ['waiting', count(counters.waiting)],
      ['reused', prompt ? `${count(counters.reused)} tokens (${Math.round(100 * counters.reused / prompt)} %)` : '0'],
      ['computed', count(counters.computed)], ['generated', count(counters.generated)],
      ['copies on write', count(totals.copied)], ['evictions', count(totals.evicted)], ['preemptions', count(counters.preemptions)],
    ] as const;
    for (const [name, value] of shown) {
      let number = this.facts.get(name);
      if (!number) {
        number = element('dd');
        this.facts.set(name, number);
        byId('cache-facts').append(element('div', {}, element('dt', {}, name), number));
      }
      if (number.textContent !== value) number.textContent = value;
    }
  }

  private tell(message: string): void {
    const node = byId('cache-error');
    node.textContent = message;
    node.hidden = message === '';
  }
}
