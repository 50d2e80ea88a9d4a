// Each sequence as a bar: tokens reused | computed | generated | to come.
import {byId, element} from '../dom';
import {count} from '../format';
import {ownerColour} from './colours';
import type {CacheState, SequenceState} from './state';

const kParts = ['reused', 'computed', 'generated', 'to-come'] as const;

/** Tokens of each part. */
export function partsOf(sequence: SequenceState): Record<typeof kParts[number], number> {
  const reused = Math.min(sequence.reused, sequence.prompt);
  const computed = Math.max(0, Math.min(sequence.computed, sequence.prompt) - reused);
  const {generated} = sequence;
  const whole = sequence.prompt + (sequence.max_tokens ?? generated);
  return {reused, computed, generated, 'to-come': Math.max(0, whole - reused - computed - generated)};
}

class Bar {
  private readonly parts = Object.fromEntries(kParts.map((part) => [part, element('span', {class: `part ${part}`})])) as Record<typeof kParts[number], HTMLElement>;
  private readonly name = element('span', {class: 'bar-name'});
  private readonly text = element('span', {class: 'bar-text'});
  readonly node = element('li', {class: 'bar'}, this.name,
    element('span', {class: 'track', attributes: {'aria-hidden': 'true'}}, ...kParts.map((part) => this.parts[part])), this.text);
  private drawn = '';

  update(sequence: SequenceState, longest: number, isPicked: boolean): void {
    const parts = partsOf(sequence);
    const drawn = JSON.stringify([sequence, longest, isPicked]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.node.classList.toggle('picked', isPicked);
    this.name.textContent = `#${sequence.request}${sequence.choice ? `.${sequence.choice}` : ''}${sequence.owner ? ` ${sequence.owner}` : ''}`;
    this.name.style.borderColor = ownerColour(sequence.id);
    for (const part of kParts) this.parts[part].style.width = `${parts[part] / longest * 100}%`;
    this.text.textContent = `${sequence.state}: ${count(parts.reused)} reused, ${count(parts.computed)} computed, ${count(parts.generated)} generated` +
      (sequence.preemptions ? `, preempted ${sequence.preemptions} times` : '');
  }
}

export class Bars {
  private readonly node = byId('bars');
  private readonly bars = new Map<number, Bar>();

  /** `picked`: requests to point out. */
  update(state: CacheState, picked: ReadonlySet<number>): void {
    const sequences = [...state.sequences.values()];
    const longest = Math.max(1, ...sequences.map((each) => Object.values(partsOf(each)).reduce((a, b) => a + b, 0)));
    for (const [id, bar] of this.bars) {
      if (state.sequences.has(id)) continue;
      bar.node.remove();
      this.bars.delete(id);
    }
    for (const sequence of sequences) {
      let bar = this.bars.get(sequence.id);
      if (!bar) {
        bar = new Bar();
        this.bars.set(sequence.id, bar);
        this.node.append(bar.node);
      }
      bar.update(sequence, longest, picked.has(sequence.request));
    }
    byId('no-sequences').hidden = sequences.length > 0;
  }
}
