// Gets answers: sends a branch of a conversation to the server, and writes what streams back into its messages.
import {eventsOf, request, RequestError} from '../api';
import {type Answer, type Conversation, type Message, requestMessages, requestText, siblings} from './conversation';

interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: {cached_tokens?: number};
}

interface CallDelta {
  index: number;
  id?: string;
  function?: {name?: string; arguments?: string};
}

interface Chunk {
  error?: {message: string; code?: string};
  choices?: {
    index: number;
    text?: string;
    delta?: {content?: string; reasoning_content?: string; tool_calls?: CallDelta[]};
    token_ids?: number[];
    finish_reason?: string | null;
  }[];
  usage?: Usage | null;
  kvasir?: {
    computed_tokens?: number; receipt?: string; receipts?: string[];
    differs_at?: number; cache_text?: string; request_text?: string;
  };
}

export interface Asking {
  conversation: Conversation;
  answers: Message[];  ///< one a choice, in their order
  isChat: boolean;     ///< the model has a chat template
  changed: () => void;
}

/** The running requests by their group, for whoever wants to end one. */
const running = new Map<string, AbortController>();

export function isRunning(group: string): boolean {
  return running.has(group);
}

/** The groups that any tab of this browser is answering. Where the browser has no locks, only this tab is known. */
export async function runningGroups(): Promise<Set<string>> {
  const held = await navigator.locks?.query();
  return new Set([...running.keys(), ...(held?.held ?? []).map((lock) => lock.name ?? '')]);
}

export function stop(group: string): void {
  running.get(group)?.abort();
}

/** A seed for an answer: 48 bits, which JavaScript's numbers hold exactly. */
export function drawSeed(): number {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high! % 65536) * 2 ** 32 + low!;
}

function bodyOf({conversation, answers, isChat}: Asking): Record<string, unknown> {
  const first = answers[0]!, answer = first.answer!;
  const resumed = answers.some((each) => each.answer!.ids.length > 0);
  return {
    ...answer.options,
    model: answer.model,
    seed: answer.seed,
    n: answer.choices,
    stream: true,
    stream_options: {include_usage: true},
    return_token_ids: true,
    receipt: true,
    ...(isChat ? {messages: requestMessages(conversation, first.parent)} : {prompt: requestText(conversation, first.parent)}),
    ...(resumed ? {resume_token_ids: answers.map((each) => each.answer!.ids)} : {}),
  };
}

function takeCalls(message: Message, deltas: CallDelta[]): void {
  const calls = message.calls ??= [];
  for (const delta of deltas) {
    const call = calls[delta.index] ??= {id: delta.id ?? '', name: '', arguments: ''};
    call.name += delta.function?.name ?? '';
    call.arguments += delta.function?.arguments ?? '';
  }
}

/** When the tokens of a choice came, in milliseconds since the request. */
interface Times {
  first: number;
  last: number;
  tokens: number;
}

function takeChoices(chunk: Chunk, answers: Message[], times: Times[], now: number): void {
  for (const choice of chunk.choices ?? []) {
    const message = answers[choice.index];
    if (!message) continue;
    const answer = message.answer!, time = times[choice.index]!;
    message.text += choice.delta?.content ?? choice.text ?? '';
    if (choice.delta?.reasoning_content) message.reasoning = (message.reasoning ?? '') + choice.delta.reasoning_content;
    if (choice.delta?.tool_calls) takeCalls(message, choice.delta.tool_calls);
    if (choice.token_ids?.length) {
      answer.ids.push(...choice.token_ids);
      if (time.tokens === 0) time.first = now;
      time.last = now;
      time.tokens += choice.token_ids.length;
    }
    if (choice.finish_reason) {
      answer.finish = choice.finish_reason;
      answer.state = 'done';
    }
  }
}

function takeFacts(chunk: Chunk, answers: Message[]): void {
  const own = chunk.kvasir;
  answers.forEach(({answer}, i) => {
    if (own) {
      Object.assign(answer!, {
        computed: own.computed_tokens, receipt: own.receipts?.[i] ?? own.receipt,
        differsAt: own.differs_at, cacheText: own.cache_text, requestText: own.request_text,
      });
    }
    if (chunk.usage) {
      answer!.prompt = chunk.usage.prompt_tokens;
      answer!.reused = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0;
    }
  });
}

async function read(asking: Asking, signal: AbortSignal): Promise<void> {
  const {answers, isChat, changed} = asking;
  const began = performance.now();
  const response = await request(isChat ? '/v1/chat/completions' : '/v1/completions', bodyOf(asking), signal);
  const times = answers.map((): Times => ({first: 0, last: 0, tokens: 0}));
  for await (const data of eventsOf(response)) {
    if (data === '[DONE]') break;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw new RequestError(500, chunk.error.code ?? '', chunk.error.message);
    takeChoices(chunk, answers, times, performance.now() - began);
    takeFacts(chunk, answers);
    answers.forEach(({answer}, i) => {
      const {first, last, tokens} = times[i]!;
      if (tokens > 0) answer!.firstMs ??= first;
      if (tokens > 1 && last > first) answer!.tokensPerS = (tokens - 1) * 1000 / (last - first);
    });
    changed();
  }
}

function end(answers: Message[], state: Answer['state'], error?: string): void {
  for (const {answer} of answers) {
    if (answer!.state !== 'running') continue;
    answer!.state = state;
    if (error !== undefined) answer!.error = error;
  }
}

/** Sends the request of these answers and fills them; those that have tokens already are continued. Ends when they do. */
export async function ask(asking: Asking): Promise<void> {
  const {answers, changed} = asking;
  const group = answers[0]!.answer!.group;
  const abort = new AbortController();
  running.set(group, abort);
  try {
    const reading = () => read(asking, abort.signal);
    await (navigator.locks ? navigator.locks.request(group, reading) : reading());
    end(answers, 'interrupted');
  } catch (error) {
    if (abort.signal.aborted) end(answers, 'stopped');
    else if (error instanceof RequestError) end(answers, 'failed', error.message);
    else end(answers, 'interrupted');
  } finally {
    running.delete(group);
    changed();
  }
}

/** The answers of one request, in the order of their choices. */
export function answersOf(conversation: Conversation, message: Message): Message[] {
  return siblings(conversation, message)
    .filter((other) => other.answer?.group === message.answer?.group)
    .sort((a, b) => a.answer!.choice - b.answer!.choice);
}

/** Continues answers that were stopped or interrupted: the tokens they have are sent along, and the rest is the same. */
export function resume(asking: Asking): Promise<void> {
  for (const {answer} of asking.answers) {
    answer!.state = 'running';
    delete answer!.error;
  }
  return ask(asking);
}
