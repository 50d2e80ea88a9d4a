// Plots of what the server does over time. Twice a second is often enough for a line.
import uPlot from 'uplot';
import {byId} from '../dom';
import {bytes, seconds, short} from '../format';
import {colour} from './colours';
import type {CacheState, Sample} from './state';

const kEveryMs = 500;
const kHeight = 130;

interface Line {
  label: string;
  colour: string;
  value: (sample: Sample, state: CacheState) => number | null;
  points?: boolean;
}

interface PlotOf {
  id: string;
  format: (value: number) => string;
  lines: Line[];
}

const kPlots: PlotOf[] = [
  {id: 'plot-rate', format: short, lines: [{label: 'tok/s', colour: 'accent', value: (s) => s.tokensPerS}]},
  {id: 'plot-ttft', format: seconds, lines: [{label: 'TTFT', colour: 'accent', value: (s) => s.firstTokenS, points: true}]},
  {id: 'plot-queue', format: short, lines: [
    {label: 'running', colour: 'accent', value: (s) => s.running},
    {label: 'waiting', colour: 'owner-0', value: (s) => s.waiting},
  ]},
  {id: 'plot-bytes', format: bytes, lines: [
    {label: 'all KV', colour: 'text', value: (s, {facts}) => (s.blocks.sequences + s.blocks.shared + s.blocks.prefix) * facts.block_bytes},
    {label: 'shared', colour: 'shared', value: (s, {facts}) => s.blocks.shared * facts.block_bytes},
    {label: 'prefix only', colour: 'prefix', value: (s, {facts}) => s.blocks.prefix * facts.block_bytes},
  ]},
  {id: 'plot-pass', format: (value) => seconds(value / 1000), lines: [
    {label: 'pass', colour: 'accent', value: (s) => s.passMs, points: true},
    {label: 'target', colour: 'owner-0', value: (_, {facts}) => facts.step_ms},
  ]},
];

function optionsOf({format, lines}: PlotOf, width: number): uPlot.Options {
  const axis = {stroke: colour('muted'), grid: {stroke: colour('line'), width: 1}, ticks: {show: false}, font: '11px system-ui, sans-serif'};
  return {
    width, height: kHeight,
    pxAlign: 1,
    cursor: {y: false, points: {size: 5}},
    legend: {show: true, live: true},
    scales: {x: {time: false}, y: {range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1]}},
    axes: [
      {...axis, size: 24, values: (_, ticks) => ticks.map((tick) => `${short(tick)} s`)},
      {...axis, size: 58, values: (_, ticks) => ticks.map(format)},
    ],
    series: [
      {label: 'at', value: (_, value) => value === null ? '–' : `${short(value)} s`},
      ...lines.map((line): uPlot.Series => ({
        label: line.label, stroke: colour(line.colour), width: 1.5, spanGaps: !line.points,
        points: {show: Boolean(line.points), size: 4, fill: colour(line.colour)},
        value: (_, value) => value === null ? '–' : format(value),
      })),
    ],
  };
}

export class Plots {
  private plots: uPlot[] = [];
  private drawnAt = 0;
  private timer = 0;

  constructor() {
    new ResizeObserver(() => this.plots.forEach((plot, i) => plot.setSize({width: byId(kPlots[i]!.id).clientWidth, height: kHeight})))
      .observe(byId('plots'));
  }

  update(state: CacheState): void {
    if (this.timer) return;
    const wait = Math.max(0, this.drawnAt + kEveryMs - performance.now());
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.drawnAt = performance.now();
      this.draw(state);
    }, wait);
  }

  /** Makes the plots anew, with the colours of the theme. */
  restyle(): void {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }

  private draw(state: CacheState): void {
    if (byId('plots').clientWidth === 0) return;
    if (this.plots.length === 0) {
      this.plots = kPlots.map((each) => new uPlot(optionsOf(each, byId(each.id).clientWidth), [[], ...each.lines.map(() => [])], byId(each.id)));
    }
    const times = state.samples.map((sample) => sample.time);
    this.plots.forEach((plot, i) => {
      plot.setData([times, ...kPlots[i]!.lines.map((line) => state.samples.map((sample) => line.value(sample, state)))]);
    });
  }
}
