// A conversation: a tree of messages, since a message can be edited and an answer given again, and the branch that is
// shown. Knows neither the page nor the server.

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

/** How an answer was made. Kept with it, so that the same request can be sent again or continued. */
export interface Answer {
  group: string;  ///< answers of one request have one group, and differ in their choice
  choice: number;
  choices: number;
  model: string;
  seed: number;
  options: Record<string, unknown>;  ///< fields of the request besides messages, seed and choices
  ids: number[];                     ///< tokens of the answer
  state: 'running' | 'done' | 'stopped' | 'interrupted' | 'failed';
  finish?: string;
  error?: string;
  prompt?: number;
  reused?: number;
  computed?: number;
  firstMs?: number;
  tokensPerS?: number;
  receipt?: string;
  differsAt?: number;
  cacheText?: string;
  requestText?: string;
}

export interface Message {
  id: string;
  parent: string;  ///< '' for the first
  role: 'user' | 'assistant' | 'tool';
  text: string;
  reasoning?: string;
  calls?: ToolCall[];
  callId?: string;  ///< of a tool's result
  answer?: Answer;  ///< of an assistant's message that a model made
}

/** Fields of requests as the reader set them, as text; '' leaves the model's default. */
export type Settings = Record<string, string>;

export interface Conversation {
  id: string;
  title: string;
  changed: number;  ///< milliseconds since 1970
  system: string;
  settings: Settings;
  messages: Message[];
  leaf: string;  ///< the last message of the branch that is shown
}

/** An id that no other has. (crypto.randomUUID is missing on plain HTTP from another machine.) */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function newConversation(settings: Settings = {}, system = ''): Conversation {
  return {id: newId(), title: 'New chat', changed: Date.now(), system, settings, messages: [], leaf: ''};
}

export function messageOf(conversation: Conversation, id: string): Message | undefined {
  return conversation.messages.find((message) => message.id === id);
}

/** The branch that ends with `leaf`, from its first message on. */
export function branch(conversation: Conversation, leaf = conversation.leaf): Message[] {
  const messages: Message[] = [];
  for (let message = messageOf(conversation, leaf); message; message = messageOf(conversation, message.parent)) {
    messages.unshift(message);
    if (messages.length > conversation.messages.length) break;  // a file with a circle
  }
  return messages;
}

/** The messages that stand at the same place, in the order in which they were made. */
export function siblings(conversation: Conversation, message: Message): Message[] {
  return conversation.messages.filter((other) => other.parent === message.parent && (other.role === message.role));
}

/** Adds a message and shows its branch. */
export function add(conversation: Conversation, message: Omit<Message, 'id'>): Message {
  const added = {...message, id: newId()};
  conversation.messages.push(added);
  conversation.leaf = added.id;
  if (conversation.messages.length === 1) conversation.title = message.text.trim().slice(0, 60) || 'New chat';
  conversation.changed = Date.now();
  return added;
}

/** Shows the branch through `message`, and below it the message made last each time. */
export function show(conversation: Conversation, message: Message): void {
  let leaf = message;
  for (;;) {
    const next = conversation.messages.filter((other) => other.parent === leaf.id).at(-1);
    if (!next) break;
    leaf = next;
  }
  conversation.leaf = leaf.id;
}

/** The branch as the messages of a request. */
export function requestMessages(conversation: Conversation, leaf: string): object[] {
  const messages: object[] = conversation.system.trim() ? [{role: 'system', content: conversation.system}] : [];
  for (const {role, text, calls, callId, reasoning} of branch(conversation, leaf)) {
    messages.push({
      role, content: text,
      ...(reasoning ? {reasoning_content: reasoning} : {}),
      ...(callId ? {tool_call_id: callId} : {}),
      ...(calls?.length ? {
        tool_calls: calls.map((call) => ({id: call.id, type: 'function', function: {name: call.name, arguments: call.arguments}})),
      } : {}),
    });
  }
  return messages;
}

/** The branch as one text, for a model without a chat template. */
export function requestText(conversation: Conversation, leaf: string): string {
  return branch(conversation, leaf).map((message) => message.text).join('');
}

// ---- files -------------------------------------------------------------------------------------------------------------

const kFile = 'kvasir_page_conversations';

export function toFile(conversations: Conversation[]): string {
  return JSON.stringify({[kFile]: 1, conversations}, null, 1);
}

function isMessage(value: unknown): value is Message {
  const message = value as Partial<Message> | null;
  return typeof message?.id === 'string' && typeof message.parent === 'string' && typeof message.text === 'string' &&
    ['user', 'assistant', 'tool'].includes(message.role as string);
}

/** The conversations of a file. Throws an Error that says what is wrong with it. */
export function fromFile(text: string): Conversation[] {
  const file = JSON.parse(text) as Record<string, unknown> | null;
  if (file?.[kFile] !== 1 || !Array.isArray(file['conversations'])) throw new Error('This file has no conversations of this page.');
  return (file['conversations'] as Partial<Conversation>[]).map((each) => {
    if (!Array.isArray(each.messages) || !each.messages.every(isMessage)) throw new Error('A conversation of this file is damaged.');
    return {...newConversation(), ...each} as Conversation;
  });
}

/** Joins two versions of one conversation, as two tabs have them: every message of either; `mine` decides else. */
export function merged(mine: Conversation, other: Conversation): Conversation {
  const known = new Set(mine.messages.map((message) => message.id));
  return {...mine, messages: [...mine.messages, ...other.messages.filter((message) => !known.has(message.id))]};
}
