// A trace: the events of a server's run, one a line, played back without a server.
import {type CacheEvent, CacheState} from './state';

export class Trace {
  private applied = 0;
  readonly state = new CacheState();

  private constructor(readonly events: CacheEvent[]) {}

  /** Throws an Error that names the bad line. */
  static parse(text: string): Trace {
    const events: CacheEvent[] = [];
    text.split('\n').forEach((line, i) => {
      if (line.trim() === '') return;
      try {
        events.push(JSON.parse(line) as CacheEvent);
      } catch {
        throw new Error(`Line ${i + 1} is not JSON. A trace has one event of GET /v1/cache/events a line.`);
      }
    });
    if (events[0]?.type !== 'snapshot') throw new Error('A trace begins with a snapshot, and this file does not.');
    const trace = new Trace(events);
    trace.seek(trace.begin);
    return trace;
  }

  get begin(): number {
    return this.events[0]!.time_s;
  }

  get end(): number {
    return this.events.at(-1)!.time_s;
  }

  /** Brings the state to this time. */
  seek(time: number): void {
    if (time < this.state.time) this.applied = 0;
    while (this.applied < this.events.length && (this.applied === 0 || this.events[this.applied]!.time_s <= time)) {
      this.state.apply(this.events[this.applied++]!);
    }
  }
}
