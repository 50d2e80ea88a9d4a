// Requests to the server that this page came from: the key, errors, and streams of server-sent events.

const kKey = 'kvasir-key';

/** An error of the server, in its own words, or of the way to it. */
export class RequestError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

let askForKey: () => Promise<string | null> = async () => null;

/** `ask` gets a key from the reader when the server wants one; null: the reader has none. */
export function onKeyWanted(ask: () => Promise<string | null>): void {
  askForKey = ask;
}

async function errorOf(response: Response): Promise<RequestError> {
  const text = await response.text();
  try {
    const error = (JSON.parse(text) as {error?: {code?: string; message?: string}}).error;
    if (error?.message) return new RequestError(response.status, error.code ?? '', error.message);
  } catch {
    // Something between the server and the page answered: its text says more than a complaint about JSON.
  }
  return new RequestError(response.status, '', text.slice(0, 300) || response.statusText);
}

async function send(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  const key = sessionStorage.getItem(kKey);
  if (key) headers['Authorization'] = `Bearer ${key}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const init: RequestInit = {method: body === undefined ? 'GET' : 'POST', headers, cache: 'no-store'};
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal) init.signal = signal;
  try {
    return await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RequestError(0, 'unreachable', 'The server does not answer. Is it still running?');
  }
}

/** Sends `body` as JSON (none: a GET) and returns the answer's head. Throws RequestError. */
export async function request(path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  let response = await send(path, body, signal);
  if (response.status === 401) {
    const key = await askForKey();
    if (key !== null) {
      sessionStorage.setItem(kKey, key);
      response = await send(path, body, signal);
    }
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  if (error.status === 401) sessionStorage.removeItem(kKey);
  throw error;
}

export async function requestJson<T>(path: string, body?: unknown): Promise<T> {
  return await (await request(path, body)).json() as T;
}

/** The data of each server-sent event, as it comes. Comments are left out. */
export async function* eventsOf(response: Response): AsyncGenerator<string> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      text += value;
      let from = 0;
      for (let end = text.indexOf('\n\n', from); end >= 0; end = text.indexOf('\n\n', from)) {
        const event = text.slice(from, end);
        from = end + 2;
        if (event.startsWith('data: ')) yield event.slice(6);
      }
      text = text.slice(from);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// ---- what the server is ------------------------------------------------------------------------------------------------

export interface ModelEntry {
  id: string;
  max_model_len?: number;
}

export interface Properties {
  model_alias: string;
  build_info: string;
  chat_template: string;
  chat_format: string | null;
  default_generation_settings: {n_ctx: number; params?: Record<string, number>};
}

export async function listModels(): Promise<ModelEntry[]> {
  return (await requestJson<{data: ModelEntry[]}>('/v1/models')).data;
}
