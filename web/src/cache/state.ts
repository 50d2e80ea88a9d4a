// The cache as the events of GET /v1/cache/events describe it (docs/api-http.md). Knows nothing of the page.

export interface SequenceState {
  id: number;
  request: number;
  choice: number;
  owner: string;
  mine: boolean;
  state: 'waiting' | 'prefill' | 'decode' | 'preempted';
  prompt: number;
  reused: number;
  computed: number;
  generated: number;
  max_tokens: number | null;
  preemptions: number;
}

export interface TreeNode {
  id: number;
  parent: number;
  mine: boolean;
  depth: number;
  tokens: number;
  used_s: number;
  text?: string;
  requests?: number[];
}

/** id, 1 if the prefix tree holds it, the sequences that hold it */
export type BlockEntry = [number, number, ...number[]];

export interface Counters {
  running: number;
  waiting: number;
  reused: number;
  computed: number;
  generated: number;
  preemptions: number;
  passes: number;
  pass_tokens: number;
  pass_s: number;
  predicted_s: number;
  blocks: {sequences: number; shared: number; prefix: number};
  bytes: {kv: number; weights: number};
}

interface Facts {
  model: string;
  layout: string;
  block_positions: number;
  block_bytes: number;
  capacity_blocks: number | null;
  step_ms: number;
}

export interface Snapshot extends Facts {
  type: 'snapshot';
  version: number;
  time_s: number;
  blocks: BlockEntry[];
  sequences: SequenceState[];
  nodes: TreeNode[];
  counters: Counters;
}

interface Changes<T> {
  set?: T[];
  gone?: number[];
}

export interface Diff {
  type: 'diff';
  time_s: number;
  blocks?: Changes<BlockEntry>;
  copied?: number[];
  evicted?: number[];
  sequences?: Changes<SequenceState>;
  nodes?: Changes<TreeNode>;
  first_token_s?: number[];
  counters: Counters;
}

export type CacheEvent = Snapshot | Diff;

export interface Block {
  id: number;
  stored: boolean;  ///< the prefix tree holds it
  sequences: number[];
}

/** What is drawn of a block: who holds it. */
export type BlockKind = 'sequence' | 'shared' | 'prefix' | 'waiting';

/** One point of the plots. */
export interface Sample {
  time: number;
  tokensPerS: number;
  running: number;
  waiting: number;
  firstTokenS: number | null;
  passMs: number | null;
  blocks: Counters['blocks'];
}

/** Five minutes at ten events a second; older samples are dropped, so that memory stays flat. */
const kMostSamples = 3000;
const kNoCounters: Counters = {
  running: 0, waiting: 0, reused: 0, computed: 0, generated: 0, preemptions: 0, passes: 0, pass_tokens: 0, pass_s: 0,
  predicted_s: 0, blocks: {sequences: 0, shared: 0, prefix: 0}, bytes: {kv: 0, weights: 0},
};

export class CacheState {
  facts: Facts = {model: '', layout: '', block_positions: 64, block_bytes: 0, capacity_blocks: null, step_ms: 0};
  time = 0;
  counters = kNoCounters;
  readonly blocks = new Map<number, Block>();
  readonly sequences = new Map<number, SequenceState>();
  readonly nodes = new Map<number, TreeNode>();
  readonly samples: Sample[] = [];
  /** What changed since clearChanges(). */
  changedBlocks = new Set<number>();
  copied = new Set<number>();
  evicted = new Set<number>();
  totals = {copied: 0, evicted: 0};

  /** Throws an Error if this is no event that this page knows. */
  apply(event: CacheEvent): void {
    if (event.type === 'snapshot') this.begin(event);
    else if (event.type === 'diff') this.change(event);
    else throw new Error('an event of an unknown type');
  }

  clearChanges(): void {
    this.changedBlocks = new Set();
    this.copied = new Set();
    this.evicted = new Set();
  }

  kindOf(block: Block): BlockKind {
    const {stored, sequences} = block;
    if (sequences.length === 0) return 'prefix';
    if (sequences.length > 1 || stored) return 'shared';
    const {state} = this.sequences.get(sequences[0]!) ?? {state: 'decode'};
    return state === 'waiting' || state === 'preempted' ? 'waiting' : 'sequence';
  }

  /** The number of cells to draw: what fits into the budget, or without one up to the highest block. */
  cells(): number {
    let highest = -1;
    for (const id of this.blocks.keys()) highest = Math.max(highest, id);
    return Math.max(this.facts.capacity_blocks ?? 0, highest + 1);
  }

  private begin(event: Snapshot): void {
    if (event.version !== 1) throw new Error(`events of version ${event.version}; this page reads version 1`);
    const {model, layout, block_positions, block_bytes, capacity_blocks, step_ms} = event;
    this.facts = {model, layout, block_positions, block_bytes, capacity_blocks, step_ms};
    for (const all of [this.blocks, this.sequences, this.nodes]) all.clear();
    this.samples.length = 0;
    this.clearChanges();
    this.totals = {copied: 0, evicted: 0};
    for (const entry of event.blocks) this.setBlock(entry);
    for (const sequence of event.sequences) this.sequences.set(sequence.id, sequence);
    for (const node of event.nodes) this.nodes.set(node.id, node);
    this.time = event.time_s;
    this.counters = event.counters;
  }

  private change(event: Diff): void {
    for (const id of event.blocks?.gone ?? []) {
      this.blocks.delete(id);
      this.changedBlocks.add(id);
    }
    for (const entry of event.blocks?.set ?? []) this.setBlock(entry);
    for (const id of event.copied ?? []) this.copied.add(id);
    for (const id of event.evicted ?? []) this.evicted.add(id);
    this.totals.copied += event.copied?.length ?? 0;
    this.totals.evicted += event.evicted?.length ?? 0;
    for (const id of event.sequences?.gone ?? []) this.sequences.delete(id);
    for (const sequence of event.sequences?.set ?? []) this.setSequence(sequence);
    for (const id of event.nodes?.gone ?? []) this.nodes.delete(id);
    for (const node of event.nodes?.set ?? []) this.nodes.set(node.id, node);
    this.addSample(event);
    this.time = event.time_s;
    this.counters = event.counters;
  }

  private setBlock([id, stored, ...sequences]: BlockEntry): void {
    this.blocks.set(id, {id, stored: stored === 1, sequences});
    this.changedBlocks.add(id);
  }

  private setSequence(sequence: SequenceState): void {
    const before = this.sequences.get(sequence.id);
    this.sequences.set(sequence.id, sequence);
    if (before === undefined || before.state === sequence.state) return;
    for (const block of this.blocks.values()) if (block.sequences.includes(sequence.id)) this.changedBlocks.add(block.id);
  }

  private addSample(event: Diff): void {
    const {counters: before} = this, {counters: now} = event;
    const seconds = event.time_s - this.time, passes = now.passes - before.passes;
    const firsts = event.first_token_s ?? [];
    this.samples.push({
      time: event.time_s,
      tokensPerS: seconds > 0 ? (now.generated - before.generated) / seconds : 0,
      running: now.running,
      waiting: now.waiting,
      firstTokenS: firsts.length ? Math.max(...firsts) : null,
      passMs: passes > 0 ? (now.pass_s - before.pass_s) * 1000 / passes : null,
      blocks: now.blocks,
    });
    if (this.samples.length > kMostSamples) this.samples.splice(0, kMostSamples / 10);
  }
}

// ---- the prefix tree, laid out -----------------------------------------------------------------------------------------

/** A node of the tree as a rectangle: from `depth` to `depth + tokens`, over `rows` of the leaves from `row` on. */
export interface Placed {
  node: TreeNode;
  row: number;
  rows: number;
}

/** Places each node: children beside each other in the order of their last use, the latest first. */
export function placed(nodes: ReadonlyMap<number, TreeNode>): Placed[] {
  const children = new Map<number, TreeNode[]>();
  for (const node of nodes.values()) {
    const parent = nodes.has(node.parent) ? node.parent : 0;
    children.set(parent, [...children.get(parent) ?? [], node]);
  }
  const all: Placed[] = [];
  const place = (parent: number, row: number): number => {
    let rows = 0;
    for (const node of (children.get(parent) ?? []).sort((a, b) => b.used_s - a.used_s || a.id - b.id)) {
      const at: Placed = {node, row: row + rows, rows: 1};
      all.push(at);
      at.rows = Math.max(1, place(node.id, row + rows));
      rows += at.rows;
    }
    return rows;
  };
  place(0, 0);
  return all;
}

/** The text from the root to a node. */
export function textOf(nodes: ReadonlyMap<number, TreeNode>, id: number): string {
  let text = '';
  for (let node = nodes.get(id); node; node = nodes.get(node.parent)) text = (node.text ?? '…') + text;
  return text;
}
