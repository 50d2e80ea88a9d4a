// The chat: the list of conversations, the one that is open, and what the reader does with it.
import {listModels, type Properties, requestJson} from '../api';
import {button, byId, download, element, pickFile, showDialog} from '../dom';
import {addText} from '../markdown';
import {answersOf, ask, type Asking, drawSeed, isRunning, resume, runningGroups, stop} from './ask';
import {
  add, branch, type Conversation, fromFile, type Message, newConversation, newId, requestMessages, show, toFile,
} from './conversation';
import {integerOf, optionsOf, settingsForm} from './settings';
import {Store} from './store';
import {Thread} from './thread';

/** Answers that are streaming are saved this often, so that a reload loses little. */
const kSaveMs = 400;

export class ChatView {
  private readonly thread = new Thread(byId('thread'), {
    edit: (message, text) => this.send(text, message.parent),
    regenerate: (message) => this.answer(message.parent),
    resume: (message) => this.resume(message),
    choose: (message) => this.choose(message),
    giveResults: (message, results) => this.giveResults(message, results),
  });
  private readonly input = byId<HTMLTextAreaElement>('message');
  private readonly model = byId<HTMLSelectElement>('model');
  private readonly system = byId<HTMLTextAreaElement>('system');
  private open = newConversation();
  private properties?: Properties;
  private saving = 0;

  private constructor(private readonly store: Store) {}

  static async start(): Promise<ChatView> {
    const view = new ChatView(await Store.open());
    view.listen();
    await view.showList();
    await view.openFirst();
    await view.readModels();
    return view;
  }

  private listen(): void {
    byId('new-chat').addEventListener('click', () => this.show(newConversation({...this.open.settings}, this.open.system)));
    byId('export').addEventListener('click', async () => download('kvasir-chats.json', toFile(await this.store.all())));
    byId('import').addEventListener('click', () => pickFile('.json,application/json', (text) => void this.import(text)));
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      const group = this.runningGroup();
      if (group) stop(group);
      else if (this.input.value.trim()) this.send(this.input.value, this.open.leaf);
    });
    this.input.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.runningGroup()) byId<HTMLFormElement>('composer').requestSubmit();
    });
    byId('show-prompt').addEventListener('click', () => void this.showPrompt());
    this.system.addEventListener('input', () => {
      this.open.system = this.system.value;
      this.save();
    });
    this.model.addEventListener('change', () => void this.readProperties());
    window.addEventListener('pagehide', () => this.saving && this.saveNow());
    this.store.onChange((id) => void this.changedElsewhere(id));
  }

  // ---- the list --------------------------------------------------------------------------------------------------------

  private async showList(): Promise<void> {
    const all = await this.store.all();
    byId('conversations').replaceChildren(...all.map((conversation) => {
      const isOpen = conversation.id === this.open.id;
      return element('li', {class: isOpen ? 'open' : ''},
        button(conversation.title, () => void this.load(conversation.id), {class: 'title', attributes: {...(isOpen ? {'aria-current': 'true'} : {}), dir: 'auto'}}),
        button('×', () => void this.remove(conversation.id), {class: 'quiet', title: 'Delete', attributes: {'aria-label': `Delete ${conversation.title}`}}));
    }));
  }

  private async openFirst(): Promise<void> {
    const wanted = sessionStorage.getItem('kvasir-open');
    await this.load(wanted ?? (await this.store.all())[0]?.id ?? '');
  }

  private async load(id: string): Promise<void> {
    const conversation = await this.store.get(id);
    const running = await runningGroups();
    for (const {answer} of conversation?.messages ?? []) {
      if (answer?.state === 'running' && !running.has(answer.group)) answer.state = 'interrupted';
    }
    this.show(conversation ?? newConversation());
  }

  private show(conversation: Conversation): void {
    if (this.saving) this.saveNow();
    this.open = conversation;
    sessionStorage.setItem('kvasir-open', conversation.id);
    this.system.value = conversation.system;
    this.drawSettings();
    this.draw();
    void this.showList();
  }

  private async remove(id: string): Promise<void> {
    await this.store.remove(id);
    if (id === this.open.id) await this.load((await this.store.all())[0]?.id ?? '');
    await this.showList();
  }

  private async import(text: string): Promise<void> {
    try {
      const all = fromFile(text);
      for (const conversation of all) await this.store.save(conversation);
      if (all[0]) await this.load(all[0].id);
    } catch (error) {
      this.complain((error as Error).message);
    }
  }

  private async changedElsewhere(id: string): Promise<void> {
    await this.showList();
    if (id === this.open.id && !this.runningGroup()) await this.load(id);
  }

  // ---- models and settings ---------------------------------------------------------------------------------------------

  private async readModels(): Promise<void> {
    try {
      const models = await listModels();
      this.model.replaceChildren(...models.map(({id}) => element('option', {value: id}, id)));
      await this.readProperties();
    } catch (error) {
      this.complain((error as Error).message);
    }
  }

  private async readProperties(): Promise<void> {
    this.properties = await requestJson<Properties>(`/props?model=${encodeURIComponent(this.model.value)}`);
    byId('no-template').hidden = this.isChat();
    byId('show-prompt').hidden = !this.isChat();
    byId('system-label').hidden = !this.isChat();
    this.drawSettings();
  }

  private isChat(): boolean {
    return this.properties?.chat_format !== null;
  }

  private drawSettings(): void {
    byId('settings').replaceChildren(settingsForm(this.open.settings, this.properties, (name, value) => {
      this.open.settings[name] = value;
      this.save();
    }));
  }

  private async showPrompt(): Promise<void> {
    try {
      const {prompt, kvasir} = await requestJson<{prompt: string; kvasir: {data: [number, number][]}}>('/apply-template', {
        model: this.model.value, messages: requestMessages(this.open, this.open.leaf), ...optionsOf(this.open.settings),
      });
      showDialog('The prompt as the model gets it',
        element('p', {}, 'The template wrote the plain text. The marked text came from the conversation, and none of it is read as a special token.'),
        markedPrompt(prompt, kvasir.data));
    } catch (error) {
      this.complain((error as Error).message);
    }
  }

  private complain(message: string): void {
    const node = byId('chat-error');
    node.textContent = message;
    node.hidden = message === '';
  }

  // ---- messages --------------------------------------------------------------------------------------------------------

  private send(text: string, parent: string): void {
    this.input.value = '';
    const message = add(this.open, {parent, role: 'user', text});
    this.answer(message.id);
  }

  private giveResults(message: Message, results: string[]): void {
    let parent = message.id;
    message.calls!.forEach((call, i) => {
      parent = add(this.open, {parent, role: 'tool', callId: call.id, text: results[i] ?? ''}).id;
    });
    this.answer(parent);
  }

  /** Asks for new answers after the message `parent`. */
  private answer(parent: string): void {
    this.complain('');
    try {
      const {settings} = this.open;
      const options = optionsOf(settings), seed = integerOf(settings, 'seed', drawSeed()), choices = integerOf(settings, 'n', 1);
      const group = newId();
      const answers = Array.from({length: Math.min(Math.max(choices, 1), 16)}, (_, choice) => add(this.open, {
        parent, role: 'assistant', text: '',
        answer: {group, choice, choices, model: this.model.value, seed, options, ids: [], state: 'running'},
      }));
      this.open.leaf = answers[0]!.id;
      void this.follow(ask, answers);
    } catch (error) {
      this.complain((error as Error).message);
      this.draw();
    }
  }

  private resume(message: Message): void {
    void this.follow(resume, answersOf(this.open, message));
  }

  /** Draws and saves while answers come. */
  private async follow(run: (asking: Asking) => Promise<void>, answers: Message[]): Promise<void> {
    const conversation = this.open;
    const asking = {conversation, answers, isChat: this.isChat(), changed: () => {
      if (conversation === this.open) this.thread.update();
      this.save(conversation);
    }};
    const ended = run(asking);
    this.draw();
    await this.store.save(conversation);
    void this.showList();
    await ended;
    await this.store.save(conversation);
    if (conversation === this.open) this.draw();
  }

  private choose(message: Message): void {
    show(this.open, message);
    this.draw();
    this.save();
  }

  private runningGroup(): string | undefined {
    return branch(this.open).map((message) => message.answer?.group).find((group) => group !== undefined && isRunning(group));
  }

  private draw(): void {
    this.thread.draw(this.open);
    const isBusy = this.runningGroup() !== undefined;
    byId('send').textContent = isBusy ? 'Stop' : 'Send';
    byId('thread').setAttribute('aria-busy', String(isBusy));
  }

  /** Saves soon; many changes at once are saved once. */
  private save(conversation = this.open): void {
    if (this.saving) return;
    this.saving = window.setTimeout(() => this.saveNow(conversation), kSaveMs);
  }

  private saveNow(conversation = this.open): void {
    clearTimeout(this.saving);
    this.saving = 0;
    if (conversation.messages.length > 0) void this.store.save(conversation);
  }
}

/** The prompt with the bytes that came from the caller marked. `data`: begin and end of each, in bytes of UTF-8. */
function markedPrompt(prompt: string, data: [number, number][]): HTMLElement {
  const bytes = new TextEncoder().encode(prompt), decoder = new TextDecoder();
  const pre = element('pre', {class: 'wrap', attributes: {dir: 'auto'}});
  let at = 0;
  for (const [begin, end] of data) {
    addText(pre, decoder.decode(bytes.subarray(at, begin)));
    addText(pre.appendChild(element('mark')), decoder.decode(bytes.subarray(begin, end)));
    at = end;
  }
  addText(pre, decoder.decode(bytes.subarray(at)));
  return pre;
}
