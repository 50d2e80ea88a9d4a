// Makes elements. Text enters the page only as text nodes: nothing here or elsewhere parses HTML.

export type Child = Node | string | null | undefined | false;

export interface Properties {
  class?: string;
  title?: string;
  type?: string;
  value?: string;
  hidden?: boolean;
  disabled?: boolean;
  /** Attributes by name; `false` leaves one out. */
  attributes?: Record<string, string | number | boolean>;
  on?: Partial<Record<keyof HTMLElementEventMap, (event: Event) => void>>;
}

export function element<K extends keyof HTMLElementTagNameMap>(tag: K, properties: Properties = {},
                                                               ...children: Child[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  const {attributes, on, class: className, ...rest} = properties;
  if (className) made.className = className;
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) Reflect.set(made, name, value);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== false) made.setAttribute(name, value === true ? '' : String(value));
  }
  for (const [name, listener] of Object.entries(on ?? {})) if (listener) made.addEventListener(name, listener);
  made.append(...children.filter((child): child is Node | string => child instanceof Node || typeof child === 'string'));
  return made;
}

export function button(label: string, onClick: () => void, properties: Properties = {}): HTMLButtonElement {
  return element('button', {type: 'button', ...properties, on: {click: onClick}}, label);
}

/** The element of the page with this id. The page has it: a missing one is a fault of the page. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found as T;
}

/** Saves a text as a file of the reader's. */
export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], {type: 'application/json'}));
  element('a', {attributes: {href: url, download: name}}).click();
  URL.revokeObjectURL(url);
}

/** Asks for a file, and gives its text to `then`. */
export function pickFile(accept: string, then: (text: string, name: string) => void): void {
  const input = element('input', {type: 'file', attributes: {accept}});
  input.addEventListener('change', async () => {
    const file = input.files?.[0];
    if (file) then(await file.text(), file.name);
  });
  input.click();
}

/** Shows a dialog with a heading, until the reader closes it. */
export function showDialog(title: string, ...content: Child[]): HTMLDialogElement {
  const heading = element('h2', {}, title);
  heading.id = 'dialog-title';
  const dialog = element('dialog', {attributes: {'aria-labelledby': heading.id}},
    element('header', {}, heading, button('Close', () => dialog.close(), {class: 'quiet'})),
    element('div', {class: 'dialog-body', attributes: {tabindex: 0}}, ...content));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
