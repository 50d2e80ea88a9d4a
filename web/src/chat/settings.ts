// The settings of a conversation: a form, and the fields of a request that it stands for.
import type {Properties} from '../api';
import {element} from '../dom';
import type {Settings} from './conversation';

interface Field {
  name: string;
  label: string;
  hint: string;
  kind: 'number' | 'integer' | 'text' | 'json';
}

const kFields: Field[] = [
  {name: 'temperature', label: 'Temperature', hint: '0: the likeliest token', kind: 'number'},
  {name: 'top_k', label: 'Top k', hint: '0: all', kind: 'integer'},
  {name: 'top_p', label: 'Top p', hint: '1: all', kind: 'number'},
  {name: 'min_p', label: 'Min p', hint: '0: off', kind: 'number'},
  {name: 'repeat_penalty', label: 'Repeat penalty', hint: '1: off', kind: 'number'},
  {name: 'presence_penalty', label: 'Presence penalty', hint: '0: off', kind: 'number'},
  {name: 'frequency_penalty', label: 'Frequency penalty', hint: '0: off', kind: 'number'},
  {name: 'max_tokens', label: 'Most tokens', hint: 'to the context\u2019s end', kind: 'integer'},
  {name: 'seed', label: 'Seed', hint: 'drawn for each answer', kind: 'integer'},
  {name: 'n', label: 'Answers side by side', hint: '1', kind: 'integer'},
  {name: 'stop', label: 'Stop at this text', hint: 'none', kind: 'text'},
  {name: 'tools', label: 'Tools (JSON)', hint: '[{"type": "function", "function": {"name": …}}]', kind: 'json'},
  {name: 'more', label: 'More fields of the request (JSON)', hint: '{"chat_template_kwargs": {"enable_thinking": false}}', kind: 'json'},
];

/** Fields of the request but seed and n, which differ between answers. Throws an Error that names a bad value. */
export function optionsOf(settings: Settings): Record<string, unknown> {
  let options: Record<string, unknown> = {};
  for (const {name, label, kind} of kFields) {
    const text = (settings[name] ?? '').trim();
    if (text === '' || name === 'seed' || name === 'n') continue;
    const value = kind === 'text' ? text : parsed(text, label, kind);
    if (name === 'more') options = {...options, ...value as object};
    else options[name] = value;
  }
  return options;
}

/** The whole number that was set, or the default. Throws an Error that names a bad value. */
export function integerOf(settings: Settings, name: 'seed' | 'n', preset: number): number {
  const text = (settings[name] ?? '').trim();
  return text === '' ? preset : parsed(text, name, 'integer') as number;
}

function parsed(text: string, label: string, kind: Field['kind']): unknown {
  if (kind === 'json') {
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      throw new Error(`${label}: ${(error as Error).message}`);
    }
  }
  const value = Number(text);
  if (!Number.isFinite(value) || (kind === 'integer' && !Number.isInteger(value))) throw new Error(`${label}: ${text} is no ${kind}`);
  return value;
}

/** The form. `changed` is called with each new value. */
export function settingsForm(settings: Settings, properties: Properties | undefined, changed: (name: string, value: string) => void): HTMLElement {
  const defaults = properties?.default_generation_settings.params ?? {};
  const form = element('div', {class: 'settings'});
  for (const {name, label, hint, kind} of kFields) {
    const id = `setting-${name}`;
    const preset = defaults[name];
    const attributes = {id, placeholder: preset !== undefined ? String(preset) : hint, spellcheck: 'false', title: hint};
    const input = kind === 'json' ? element('textarea', {attributes: {...attributes, rows: 3}})
                                  : element('input', {attributes: {...attributes, inputmode: kind === 'text' ? 'text' : 'decimal'}});
    input.value = settings[name] ?? '';
    input.addEventListener('input', () => changed(name, input.value));
    form.append(element('label', {class: kind === 'json' ? 'wide' : '', attributes: {for: id}}, label, input));
  }
  return form;
}
