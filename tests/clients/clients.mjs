// Checks `kvasir serve` with OpenAI's, LangChain's and Vercel's client libraries. Uses Node's own test runner;
// package-lock.json lists the packages. Exits 0 or 1.
//
// usage: node clients.mjs --plain=URL --strict=URL --key=KEY --limited=KEY
//
// --plain: a server without keys. --strict: a server with --strict-model and two keys; the second allows one request at
// a time. Both serve models/tales with --chat-format plain.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';

const options = Object.fromEntries(['plain', 'strict', 'key', 'limited'].map((name) => [name, { type: 'string' }]));
const args = parseArgs({ options }).values;
const client = new OpenAI({ baseURL: `${args.plain}/v1`, apiKey: 'none', maxRetries: 0, timeout: 10_000 });
const strict = (apiKey) => new OpenAI({ baseURL: `${args.strict}/v1`, apiKey, maxRetries: 0, timeout: 10_000 });

const messages = [{ role: 'user', content: 'Tell me of the king.' }];
const chat = { model: 'tales', messages, max_completion_tokens: 12, seed: 7, temperature: 0.8, ignore_eos: true };
const text = {
  model: 'tales', prompt: 'Once upon a time', max_tokens: 12, seed: 7, temperature: 0.8, ignore_eos: true,
};
const long = { ...text, n: 16, max_tokens: 900 };

async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

// Returns the error of a promise; its type must be the client's type for the status.
async function refusal(promise, type) {
  const error = await promise.then((answer) => assert.fail(`no error, but ${JSON.stringify(answer).slice(0, 200)}`),
    (e) => e);
  assert.ok(error instanceof type, `${error.constructor.name} is no ${type.name}: ${error.message}`);
  return error;
}

async function scheduler() {
  return (await (await fetch(`${args.plain}/v1/scheduler`)).json()).models.tales;
}

async function within(milliseconds, what, done) {
  for (const end = Date.now() + milliseconds; !(await done()); await sleep(10)) {
    assert.ok(Date.now() < end, `${what}: not within ${milliseconds} ms: ${JSON.stringify(await scheduler())}`);
  }
}

describe('openai: answers', () => {
  test('chat', async () => {
    const answer = await client.chat.completions.create(chat);
    assert.equal(answer.object, 'chat.completion');
    assert.match(answer.id, /^chatcmpl-/);
    assert.equal(answer.model, 'tales');
    assert.equal(answer.choices[0].message.role, 'assistant');
    assert.ok(answer.choices[0].message.content.length > 0);
    assert.equal(answer.choices[0].finish_reason, 'length');
    assert.equal(answer.usage.completion_tokens, 12);
    assert.equal(typeof answer.usage.prompt_tokens_details.cached_tokens, 'number');
    assert.ok(answer._request_id, 'the client found x-request-id');
  });

  test('completions: texts, ids, several', async () => {
    const one = await client.completions.create(text);
    assert.equal(one.object, 'text_completion');
    const ids = await (await fetch(`${args.plain}/tokenize`, {
      method: 'POST', headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: text.prompt }),
    })).json();
    const byIds = await client.completions.create({ ...text, prompt: ids.tokens });
    assert.equal(byIds.choices[0].text, one.choices[0].text);
    const many = await client.completions.create({ ...text, prompt: ['The fox', text.prompt], n: 2 });
    assert.deepEqual(many.choices.map((c) => c.index), [0, 1, 2, 3]);
    assert.equal(many.choices[2].text, one.choices[0].text);
    assert.notEqual(many.choices[3].text, many.choices[2].text);
  });

  test('embeddings: base64 is what the client asks for, and floats are the same', async () => {
    const coded = await client.embeddings.create({ model: 'tales', input: ['a king', 'the fox', 'old houses'] });
    const numbers = await client.embeddings.create({
      model: 'tales', input: ['some trees', 'old houses'], encoding_format: 'float',
    });
    assert.deepEqual(coded.data.map((d) => d.index), [0, 1, 2]);
    assert.equal(coded.data[2].embedding.length, 192);
    numbers.data[1].embedding.forEach((x, i) => assert.ok(Math.abs(x - coded.data[2].embedding[i]) < 1e-6));
    assert.ok(Math.abs(coded.data[0].embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-5);
    assert.ok(coded.usage.prompt_tokens > 0);
  });

  test('models', async () => {
    const list = await all(client.models.list());
    assert.deepEqual(list.map((m) => m.id), ['tales']);
    const model = await client.models.retrieve('tales');
    assert.deepEqual(model, list[0]);
    assert.equal(model.owned_by, 'kvasir');
    assert.equal(model.max_model_len, 1024);
    await refusal(client.models.retrieve('other'), OpenAI.NotFoundError);
  });

  test('n, seeds, and the seed that was drawn', async () => {
    const two = await client.chat.completions.create({ ...chat, n: 2 });
    assert.deepEqual(two.choices.map((c) => c.index), [0, 1]);
    assert.notEqual(two.choices[0].message.content, two.choices[1].message.content);
    const one = await client.chat.completions.create(chat);
    assert.equal(one.choices[0].message.content, two.choices[0].message.content);
    assert.equal(one.kvasir.seed, 7);
    assert.equal(one.system_fingerprint, two.system_fingerprint);
    const { seed, ...unseeded } = chat;
    const drawn = await client.chat.completions.create(unseeded);
    const again = await client.chat.completions.create({ ...chat, seed: drawn.kvasir.seed });
    assert.equal(again.choices[0].message.content, drawn.choices[0].message.content);
    const other = await client.chat.completions.create({ ...chat, seed: 8 });
    assert.notEqual(other.choices[0].message.content, one.choices[0].message.content);
  });

  test('logprobs', async () => {
    const one = await client.chat.completions.create({ ...chat, logprobs: true, top_logprobs: 3 });
    const { content } = one.choices[0].logprobs;
    assert.equal(content.length, 12);
    for (const entry of content) {
      assert.equal(entry.top_logprobs.length, 3);
      assert.ok(entry.logprob <= 0 && entry.logprob <= entry.top_logprobs[0].logprob);
      assert.ok(entry.top_logprobs[0].logprob >= entry.top_logprobs[1].logprob);
    }
    const bytes = Buffer.from(content.flatMap((entry) => entry.bytes));
    assert.equal(bytes.toString('utf8'), one.choices[0].message.content);
    const old = await client.completions.create({ ...text, logprobs: 2 });
    const { tokens, token_logprobs, text_offset, top_logprobs } = old.choices[0].logprobs;
    assert.equal(tokens.join(''), old.choices[0].text);
    assert.equal(token_logprobs.length, 12);
    assert.equal(text_offset[1] - text_offset[0], tokens[0].length);
    assert.ok(Object.keys(top_logprobs[0]).length >= 1);
  });
});

// Every field of a request: [field, value] is accepted; with a third element it is refused, and the error's `param` is
// that element.
const bothFields = [
  ['max_tokens', 5], ['max_tokens', 'five', 'max_tokens'], ['max_completion_tokens', 5],
  ['max_completion_tokens', -1, 'max_completion_tokens'], ['min_tokens', 3],
  ['temperature', 0], ['temperature', -1, 'temperature'], ['top_p', 0.9], ['top_p', 2, 'top_p'],
  ['top_k', 40], ['top_k', -1], ['top_k', 0.5, 'top_k'], ['min_p', 0.05], ['min_p', 2, 'min_p'],
  ['repeat_penalty', 1.1], ['repetition_penalty', 1.1], ['repetition_penalty', 0, 'repetition_penalty'],
  ['frequency_penalty', 0.5], ['frequency_penalty', '1', 'frequency_penalty'],
  ['presence_penalty', -0.5], ['presence_penalty', [], 'presence_penalty'],
  ['seed', -5], ['seed', Number.MAX_SAFE_INTEGER], ['seed', 1.5, 'seed'],
  ['n', 2], ['n', 17, 'n'], ['stop', 'the'], ['stop', ['a', 'b']], ['stop', 5, 'stop'],
  ['stop_token_ids', [17]], ['stop_token_ids', ['a'], 'stop_token_ids'],
  ['include_stop_str_in_output', true], ['include_stop_str_in_output', 1, 'include_stop_str_in_output'],
  ['logit_bias', { 17: -100, 18: 2.5 }], ['logit_bias', { 17: 200 }, 'logit_bias'],
  ['stream', false], ['stream', 'no', 'stream'],
  ['stream_options', { include_usage: true }], ['stream_options', 5, 'stream_options'],
  ['user', 'u'], ['safety_identifier', 's'], ['prompt_cache_key', 'k'], ['prompt_cache_retention', '24h'],
  ['cache_salt', 'salt'], ['cache_salt', 5, 'cache_salt'], ['cache_prompt', false], ['cache_prompt', 1, 'cache_prompt'],
  ['priority', 3], ['priority', 'high', 'priority'], ['timeout_ms', 20000], ['timeout_ms', -1, 'timeout_ms'],
  ['receipt', true], ['receipt', 1, 'receipt'], ['return_token_ids', true], ['return_token_ids', 1, 'return_token_ids'],
  ['resume_token_ids', [17, 18]], ['resume_token_ids', 'a', 'resume_token_ids'],
  ['lookup', 4], ['lookup', 65, 'lookup'], ['ignore_eos', false], ['ignore_eos', 1, 'ignore_eos'],
  ['grammar', 'root ::= "a"', 'grammar'], ['structured_outputs', { regex: 'a' }, 'structured_outputs'],
  ['store', true], ['metadata', { a: 'b' }], ['service_tier', 'auto'], ['verbosity', 'low'],
  ['prediction', { type: 'content', content: 'a' }], ['a_field_that_nobody_knows', 1],
  ['temperature', null], ['stop', null],
];
const chatFields = [
  ['messages', [], 'messages'], ['messages', [{ role: 'user', content: [{ type: 'text', text: 'a' }] }]],
  ['messages', [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }] }],
    'messages[0].content[0]'],
  ['messages', [{ role: 'developer', content: 'Be kind.' }, { role: 'user', content: 'a' }]],
  ['logprobs', true], ['logprobs', 3, 'logprobs'], ['top_logprobs', 3, 'top_logprobs'],
  ['response_format', { type: 'text' }], ['response_format', { type: 'json_object' }, 'response_format'],
  ['tools', []], ['tools', [{ type: 'function', function: { name: 'f', parameters: {} } }], 'tools'],
  ['tool_choice', 'none'], ['tool_choice', 'required', 'tool_choice'], ['parallel_tool_calls', true],
  ['functions', [{ name: 'f' }], 'functions'], ['reasoning_effort', 'low', 'reasoning_effort'],
  ['chat_template_kwargs', { enable_thinking: false }, 'chat_template_kwargs'],
  ['modalities', ['text']], ['modalities', ['text', 'audio'], 'modalities'],
  ['web_search_options', { search_context_size: 'low' }, 'web_search_options'],
  ['add_generation_prompt', true], ['add_generation_prompt', 1, 'add_generation_prompt'],
  ['continue_final_message', true, 'continue_final_message'],
];
const textFields = [
  ['prompt', null, 'prompt'], ['prompt', [[17, 18], [19]]], ['prompt', [1e6], 'prompt'],
  ['best_of', 1], ['best_of', 2, 'best_of'], ['logprobs', 5], ['logprobs', 6, 'logprobs'],
  ['echo', false], ['echo', true, 'echo'], ['suffix', 'end', 'suffix'],
];
const embeddingFields = [
  ['input', null, 'input'], ['input', [17, 18]], ['encoding_format', 'int8', 'encoding_format'], ['dimensions', 192],
  ['dimensions', 64, 'dimensions'], ['user', 'u'],
];

describe('openai: fields', () => {
  const kinds = [
    ['chat', (body) => client.chat.completions.create({ ...chat, max_completion_tokens: 8, ...body }),
      [...bothFields, ...chatFields]],
    ['completions', (body) => client.completions.create({ ...text, max_tokens: 8, ...body }),
      [...bothFields, ...textFields]],
    ['embeddings', (body) => client.embeddings.create({ model: 'tales', input: 'a well', ...body }), embeddingFields],
  ];
  for (const [kind, call, fields] of kinds) {
    test(`${kind}: ${fields.length} values`, async () => {
      for (const [field, value, param] of fields) {
        const what = `${field}: ${JSON.stringify(value)}`;
        // Nothing cached from one body is used for the next.
        const body = kind === 'embeddings' ? { cache_prompt: false, [field]: value } : { [field]: value };
        if (param === undefined) {
          const answer = await call(body).catch((e) => assert.fail(`${what}: ${e.message}`));
          assert.ok(answer.choices?.length > 0 || answer.data?.length > 0, what);
        } else {
          const error = await refusal(call(body), OpenAI.BadRequestError)
            .catch((e) => assert.fail(`${what}: ${e.message}`));
          assert.equal(error.param, param, what);
          assert.match(error.code, /^(invalid_value|unsupported_parameter)$/, what);
          assert.equal(error.type, 'invalid_request_error', what);
        }
      }
    });
  }

  test('fields that change nothing are named', async () => {
    const answer = await client.chat.completions.create({ ...chat, store: true, nobody_knows_it: 1 });
    assert.deepEqual([...answer.kvasir.ignored].sort(), ['nobody_knows_it', 'store']);
  });
});

describe('openai: streams', () => {
  for (const include_usage of [false, true]) {
    test(`chat: the order of chunks, include_usage ${include_usage}`, async () => {
      const chunks = await all(await client.chat.completions.create({
        ...chat, stream: true, stream_options: { include_usage },
      }));
      if (include_usage) {
        const last = chunks.pop();
        assert.deepEqual(last.choices, []);
        assert.equal(last.usage.completion_tokens, 12);
        assert.ok(chunks.every((chunk) => chunk.usage === null));
      } else {
        assert.ok(chunks.every((chunk) => !('usage' in chunk)));
      }
      assert.ok(chunks.every((chunk) => chunk.id === chunks[0].id && chunk.choices.length === 1));
      const choices = chunks.map((chunk) => chunk.choices[0]);
      assert.deepEqual(choices[0].delta, { role: 'assistant', content: '' });
      assert.deepEqual(choices.at(-1).delta, {});
      assert.deepEqual(choices.map((c) => c.finish_reason), [...choices.slice(1).map(() => null), 'length']);
      assert.equal(chunks.at(-1).kvasir.seed, 7);
      const whole = await client.chat.completions.create(chat);
      assert.equal(choices.map((c) => c.delta.content ?? '').join(''), whole.choices[0].message.content);
    });
  }

  test('the stream helper makes the whole answer', async () => {
    const stream = client.chat.completions.stream({ ...chat, n: 2, logprobs: true });
    const [made, whole] = [await stream.finalChatCompletion(), await client.chat.completions.create({ ...chat, n: 2 })];
    assert.deepEqual(made.choices.map((c) => c.message.content), whole.choices.map((c) => c.message.content));
    assert.deepEqual(made.choices.map((c) => c.finish_reason), ['length', 'length']);
    assert.equal(made.choices[0].logprobs.content.length, 12);
  });

  test('completions', async () => {
    const chunks = await all(await client.completions.create({ ...text, n: 2, stream: true }));
    const whole = await client.completions.create({ ...text, n: 2 });
    for (const index of [0, 1]) {
      const own = chunks.map((chunk) => chunk.choices[0]).filter((c) => c.index === index);
      assert.equal(own.map((c) => c.text).join(''), whole.choices[index].text);
      assert.equal(own.at(-1).finish_reason, 'length');
    }
  });

  test('a failure in mid-stream is an error with its code', async () => {
    const stream = await client.completions.create({ ...long, stream: true, timeout_ms: 150 });
    const error = await refusal(all(stream), OpenAI.APIError);
    assert.equal(error.code, 'deadline_exceeded');
  });

  test('AbortController ends the request in the server', async () => {
    const before = await scheduler();
    const controller = new AbortController();
    const stream = await client.completions.create({ ...long, stream: true }, { signal: controller.signal });
    let chunks = 0;
    for await (const chunk of stream) {
      assert.ok(chunk.choices);
      if (++chunks === 3) controller.abort();
    }
    assert.ok(chunks < 14_000, 'the stream came to its end');
    await within(1000, 'cancelled', async () => {
      const now = await scheduler();
      return now.cancelled > before.cancelled && now.running === 0;
    });
    const whole = new AbortController();
    const waiting = client.completions.create(long, { signal: whole.signal });
    await within(5000, 'it runs', async () => (await scheduler()).running > 0);
    whole.abort();
    await refusal(waiting, OpenAI.APIUserAbortError);
    await within(1000, 'cancelled without a stream', async () => (await scheduler()).running === 0);
  });
});

describe('openai: errors have their types', () => {
  test('AuthenticationError', async () => {
    const error = await refusal(strict('wrong').chat.completions.create(chat), OpenAI.AuthenticationError);
    assert.equal(error.code, 'invalid_api_key');
    assert.equal(error.type, 'authentication_error');
    await refusal(strict('wrong').models.list(), OpenAI.AuthenticationError);
    assert.ok(await strict(args.key).chat.completions.create(chat));
  });

  test('NotFoundError', async () => {
    const error = await refusal(strict(args.key).chat.completions.create({ ...chat, model: 'gpt-4o' }),
      OpenAI.NotFoundError);
    assert.equal(error.code, 'model_not_found');
    assert.equal(error.param, 'model');
    const answer = await client.chat.completions.create({ ...chat, model: 'gpt-4o' });
    assert.equal(answer.model, 'tales');
    assert.equal((await refusal(client.get('/nothing'), OpenAI.NotFoundError)).code, 'unknown_url');
  });

  test('BadRequestError: the context', async () => {
    const tooLong = [{ role: 'user', content: 'king '.repeat(1100) }];
    const call = client.chat.completions.create({ ...chat, messages: tooLong });
    const error = await refusal(call, OpenAI.BadRequestError);
    assert.equal(error.code, 'context_length_exceeded');
    assert.match(error.message, /maximum context length is 1024 tokens/);
  });

  test('RateLimitError, and repeating after Retry-After', async () => {
    const limited = strict(args.limited);
    const controller = new AbortController();
    const stream = await limited.completions.create({ ...long, stream: true }, { signal: controller.signal });
    try {
      const error = await refusal(limited.completions.create(text), OpenAI.RateLimitError);
      assert.equal(error.code, 'too_many_requests');
      assert.ok(Number(error.headers.get('retry-after')) >= 1);
      const again = limited.completions.create(text, { maxRetries: 3 });
      controller.abort();
      assert.equal((await again).choices.length, 1);
    } finally {
      controller.abort();
      stream.controller.abort();
    }
  });
});

describe('LangChain', () => {
  const model = (more) => new ChatOpenAI({
    model: 'tales', apiKey: 'none', maxRetries: 0, temperature: 0.8, maxTokens: 12, streamUsage: true,
    configuration: { baseURL: `${args.plain}/v1` }, modelKwargs: { seed: 7, ignore_eos: true }, ...more,
  });

  test('invoke and stream', async () => {
    const answer = await model().invoke('Tell me of the king.');
    assert.ok(answer.content.length > 0);
    assert.equal(answer.usage_metadata.output_tokens, 12);
    assert.equal(typeof answer.usage_metadata.input_token_details.cache_read, 'number');
    assert.equal(answer.response_metadata.finish_reason, 'length');
    const chunks = await all(await model().stream('Tell me of the king.'));
    const whole = chunks.reduce((sum, chunk) => sum.concat(chunk));
    assert.equal(whole.content, answer.content);
    assert.equal(whole.usage_metadata.output_tokens, 12);
  });

  test('an error keeps its code', async () => {
    const error = await model().invoke('king '.repeat(1100)).then(() => assert.fail('no error'), (e) => e);
    assert.match(error.message, /maximum context length/);
  });
});

describe('AI SDK', () => {
  const provider = createOpenAICompatible({ name: 'kvasir', baseURL: `${args.plain}/v1`, includeUsage: true });
  const call = {
    model: provider('tales'), prompt: 'Tell me of the king.', maxOutputTokens: 12, seed: 7, temperature: 0.8,
    maxRetries: 0, providerOptions: { kvasir: { ignore_eos: true } },
  };

  test('generateText and streamText', async () => {
    const whole = await generateText(call);
    assert.ok(whole.text.length > 0);
    assert.equal(whole.finishReason, 'length');
    assert.equal(whole.usage.outputTokens, 12);
    assert.ok(whole.usage.inputTokens > 0);
    const stream = streamText(call);
    assert.equal((await all(stream.textStream)).join(''), whole.text);
    const usage = await stream.usage;
    assert.equal(usage.outputTokens, 12);
    assert.equal(usage.inputTokens, whole.usage.inputTokens);
    assert.equal(await stream.finishReason, 'length');
  });

  test('an error keeps its status', async () => {
    const error = await generateText({ ...call, prompt: 'king '.repeat(1100) })
      .then(() => assert.fail('no error'), (e) => e);
    assert.equal(error.statusCode, 400);
    assert.match(error.message, /maximum context length/);
  });
});

let began;
before(async () => { began = await scheduler(); });
after(async () => {
  const end = await scheduler();
  assert.equal(end.running, 0, 'nothing runs at the end');
  assert.equal(end.waiting, 0, 'nothing waits at the end');
  assert.ok(end.finished > began.finished);
});
