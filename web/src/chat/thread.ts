// The messages of a conversation on the page, with what can be done to each. Decides nothing: it calls its actions.
import {button, element} from '../dom';
import {MessageView} from './answer_view';
import {answersOf, isRunning} from './ask';
import {branch, type Conversation, type Message, siblings} from './conversation';

export interface ThreadActions {
  edit(message: Message, text: string): void;
  regenerate(message: Message): void;
  resume(message: Message): void;
  choose(message: Message): void;
  giveResults(message: Message, results: string[]): void;
}

export class Thread {
  private views = new Map<string, MessageView>();
  private conversation?: Conversation;
  private frame = 0;

  constructor(private readonly node: HTMLElement, private readonly actions: ThreadActions) {}

  /** Draws a conversation from anew. */
  draw(conversation: Conversation): void {
    this.conversation = conversation;
    this.views = new Map();
    const shown = branch(conversation);
    this.node.replaceChildren(...shown.map((message, i) => this.row(conversation, message, i === shown.length - 1)));
    if (shown.length === 0) this.node.append(element('p', {class: 'empty'}, 'Write a message to begin.'));
    this.node.scrollTop = this.node.scrollHeight;
  }

  /** Draws messages that have changed, at the next frame. */
  update(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const {scrollTop, scrollHeight, clientHeight} = this.node;
      for (const view of this.views.values()) if (view.message.answer?.state === 'running') view.update();
      // A reader who has scrolled up stays there.
      if (scrollHeight - scrollTop - clientHeight < 40) this.node.scrollTop = this.node.scrollHeight;
    });
  }

  private row(conversation: Conversation, message: Message, isLast: boolean): HTMLElement {
    const together = message.answer ? answersOf(conversation, message) : [message];
    const row = element('div', {class: together.length > 1 ? 'row sides' : 'row'});
    for (const each of together) {
      const view = new MessageView(each);
      this.views.set(each.id, view);
      this.addActions(conversation, view, each === message, together);
      if (each === message && isLast && each.calls?.length && each.answer?.state === 'done') view.node.append(this.resultForm(each));
      row.append(view.node);
    }
    return row;
  }

  private addActions(conversation: Conversation, view: MessageView, isShown: boolean, together: Message[]): void {
    const {message, actions: bar} = view;
    const quiet = {class: 'quiet'};
    if (together.length > 1) {
      view.node.classList.toggle('chosen', isShown);
      bar.append(button(isShown ? 'Going on from here' : 'Go on from here', () => this.actions.choose(message),
        {...quiet, attributes: {'aria-pressed': String(isShown)}}));
    }
    if (isShown) this.addSwitch(conversation, bar, message);
    if (message.role === 'user') bar.append(button('Edit', () => this.edit(view), quiet));
    if (!message.answer || isRunning(message.answer.group)) return;
    const {state} = message.answer;
    if (isShown && state !== 'done' && state !== 'running') bar.append(button('Resume', () => this.actions.resume(message), quiet));
    if (isShown) bar.append(button('Regenerate', () => this.actions.regenerate(message), {...quiet, title: 'another answer, with another seed'}));
    bar.append(button('Copy', () => void navigator.clipboard?.writeText(message.text), quiet));
  }

  /** Where a message was edited or an answer given again, the reader can walk through the versions. */
  private addSwitch(conversation: Conversation, bar: HTMLElement, message: Message): void {
    const keyOf = (each: Message) => each.answer?.group ?? each.id;
    const all = siblings(conversation, message);
    const versions = all.filter((each, i) => all.findIndex((first) => keyOf(first) === keyOf(each)) === i);
    if (versions.length < 2) return;
    const at = versions.findIndex((each) => keyOf(each) === keyOf(message));
    const to = (i: number) => () => this.actions.choose(versions[i]!);
    bar.append(
      button('‹', to(at - 1), {class: 'quiet', disabled: at === 0, attributes: {'aria-label': 'earlier version'}}),
      element('span', {class: 'version'}, `${at + 1}/${versions.length}`),
      button('›', to(at + 1), {class: 'quiet', disabled: at === versions.length - 1, attributes: {'aria-label': 'later version'}}));
  }

  private edit(view: MessageView): void {
    const area = element('textarea', {attributes: {'aria-label': 'Your message', rows: 4}});
    area.value = view.message.text;
    const back = () => this.conversation && this.draw(this.conversation);
    view.node.replaceChildren(area, element('div', {class: 'actions'},
      button('Send', () => this.actions.edit(view.message, area.value), {class: 'primary'}),
      button('Cancel', () => void back(), {class: 'quiet'})));
    area.focus();
  }

  private resultForm(message: Message): HTMLElement {
    const areas = message.calls!.map((call) => element('textarea', {attributes: {'aria-label': `result of ${call.name}`, rows: 2, placeholder: `result of ${call.name}`}}));
    return element('div', {class: 'results'}, ...areas,
      button('Send results', () => this.actions.giveResults(message, areas.map((area) => area.value)), {class: 'primary'}));
  }
}
