// The scrubber under a trace: play, pause, speed, and any time of it.
import {button, byId, element} from '../dom';
import {seconds} from '../format';
import type {Trace} from './trace';

const kTickMs = 50;
const kSpeeds = [1, 4, 16];

export class Player {
  private readonly node = byId('player');
  private timer = 0;

  /** `moved` is called when the trace has been brought to another time; `closed`, when the reader wants no more of it. */
  constructor(private readonly moved: () => void, private readonly closed: () => void) {}

  play(trace: Trace, name: string): void {
    this.end();
    const slider = element('input', {type: 'range', attributes: {
      id: 'scrubber', min: trace.begin, max: trace.end, step: 'any', value: trace.begin, 'aria-label': 'time of the trace',
    }});
    const time = element('output', {class: 'player-time'});
    const speed = element('select', {attributes: {'aria-label': 'speed'}},
      ...kSpeeds.map((each) => element('option', {value: String(each)}, `${each}×`)));
    const toggle = button('Play', () => this.timer ? pause() : run(), {class: 'primary', attributes: {id: 'play'}});
    const show = (at: number) => {
      trace.seek(at);
      slider.value = String(at);
      time.textContent = `${seconds(at - trace.begin)} of ${seconds(trace.end - trace.begin)}`;
      slider.setAttribute('aria-valuetext', time.textContent);
      this.moved();
    };
    const pause = () => {
      this.end();
      toggle.textContent = 'Play';
    };
    const run = () => {
      toggle.textContent = 'Pause';
      if (Number(slider.value) >= trace.end) show(trace.begin);
      this.timer = window.setInterval(() => {
        const next = Math.min(trace.end, Number(slider.value) + kTickMs / 1000 * Number(speed.value));
        show(next);
        if (next >= trace.end) pause();
      }, kTickMs);
    };
    slider.addEventListener('input', () => show(Number(slider.value)));
    this.node.replaceChildren(toggle, slider, time, speed, element('span', {class: 'player-name'}, name),
      button('Close', () => {
        this.end();
        this.node.hidden = true;
        this.closed();
      }, {class: 'quiet'}));
    this.node.hidden = false;
    show(trace.begin);
  }

  private end(): void {
    clearInterval(this.timer);
    this.timer = 0;
  }
}
