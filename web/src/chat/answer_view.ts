// One message as the reader sees it: its text, reasoning, calls, and how it was computed.
import {button, element, showDialog} from '../dom';
import {count, seconds, short} from '../format';
import {addText, Markdown} from '../markdown';
import type {Answer, Message, ToolCall} from './conversation';

const kRoles = {user: 'You', assistant: 'Model', tool: 'Tool result'} as const;

/** Draws a message, and again whenever it has changed. */
export class MessageView {
  readonly node: HTMLElement;
  readonly actions = element('div', {class: 'actions'});
  private readonly markdown = new Markdown();
  private readonly reasoning = new Markdown();
  private readonly thoughts = element('details', {class: 'reasoning', hidden: true},
    element('summary', {}, 'Reasoning'), this.reasoning.node);
  private readonly calls = element('div');
  private readonly facts = element('div', {class: 'facts'});
  private drawnCalls = '';

  constructor(readonly message: Message) {
    const {role} = message;
    this.node = element('article', {class: `message ${role}`, attributes: {'aria-label': kRoles[role]}},
      element('div', {class: 'role', attributes: {'aria-hidden': 'true'}}, kRoles[role]),
      this.thoughts, this.markdown.node, this.calls, this.facts, this.actions);
    this.update();
  }

  update(): void {
    const {text, reasoning, calls, role, answer} = this.message;
    if (role === 'assistant') this.markdown.update(text);
    else if (!this.markdown.node.hasChildNodes()) addText(this.markdown.node.appendChild(element('p', {class: 'plain', attributes: {dir: 'auto'}})), text);
    this.thoughts.hidden = !reasoning;
    if (reasoning) this.reasoning.update(reasoning);
    const drawn = JSON.stringify(calls ?? []);
    if (drawn !== this.drawnCalls) this.calls.replaceChildren(...(calls ?? []).map(drawCall));
    this.drawnCalls = drawn;
    this.node.classList.toggle('running', answer?.state === 'running');
    if (answer) this.facts.replaceChildren(...drawFacts(answer));
  }
}

function drawCall(call: ToolCall): HTMLElement {
  const code = element('code');
  addText(code, call.arguments);
  return element('div', {class: 'call'}, element('strong', {}, 'Calls '), element('code', {}, call.name),
    element('pre', {attributes: {tabindex: 0, role: 'region', 'aria-label': `arguments of ${call.name}`}}, code));
}

function fact(label: string, value: string, title: string): HTMLElement {
  return element('span', {class: 'fact', title, attributes: {'data-fact': label}}, element('b', {}, value), ` ${label}`);
}

const kStates: Partial<Record<Answer['state'], string>> = {
  stopped: 'Stopped.', interrupted: 'Interrupted: the connection ended before the answer did.',
};

function drawFacts(answer: Answer): HTMLElement[] {
  const facts: HTMLElement[] = [];
  if (answer.reused !== undefined) facts.push(fact('reused', count(answer.reused), 'prompt tokens that the cache had'));
  if (answer.computed !== undefined) facts.push(fact('computed', count(answer.computed), 'prompt tokens that were computed'));
  if (answer.ids.length > 0) facts.push(fact('generated', count(answer.ids.length), 'tokens of the answer'));
  if (answer.firstMs !== undefined) facts.push(fact('TTFT', seconds(answer.firstMs / 1000), 'from sending the request to the first token'));
  if (answer.tokensPerS !== undefined) facts.push(fact('tok/s', short(answer.tokensPerS), 'tokens a second after the first'));
  if (answer.finish === 'length') facts.push(element('span', {class: 'fact'}, 'ended at the most tokens'));
  if (answer.receipt) facts.push(button('receipt', () => showReceipt(answer), {class: 'fact link'}));
  if (answer.differsAt !== undefined) facts.push(button('where did my cache end?', () => showDifference(answer), {class: 'fact link'}));
  const state = answer.state === 'failed' ? answer.error : kStates[answer.state];
  if (state) facts.push(element('p', {class: answer.state === 'failed' ? 'error' : 'note'}, state));
  return facts;
}

function showReceipt(answer: Answer): void {
  showDialog('Receipt',
    element('p', {}, 'The receipt proves what was computed. The same request with the same seed has the same receipt, on every CPU and whatever the cache held.'),
    element('pre', {class: 'wrap'}, answer.receipt ?? ''),
    element('p', {}, `Model ${answer.model}, seed ${answer.seed}${answer.choices > 1 ? `, choice ${answer.choice}` : ''}.`));
}

function showDifference(answer: Answer): void {
  const side = (title: string, text: string) => {
    const pre = element('pre', {class: 'wrap', attributes: {dir: 'auto'}});
    addText(pre, text || '(nothing)');
    return element('section', {}, element('h3', {}, title), pre);
  };
  showDialog('Where the cache ended',
    element('p', {}, `The first ${count(answer.differsAt!)} tokens of this prompt were in the cache. From there on the texts differ, so the rest was computed.`),
    element('div', {class: 'sides'}, side('The cache goes on with', answer.cacheText ?? ''), side('This prompt goes on with', answer.requestText ?? '')));
}
