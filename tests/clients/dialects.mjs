// Checks tool calls with `kvasir serve` over its three APIs: chat completions and Responses by OpenAI's library,
// Messages by Anthropic's. script_model.py writes the model, whose answers are known. Exits 0 or 1.
//
// usage: node dialects.mjs --url=URL
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { parseArgs } from 'node:util';

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const args = parseArgs({ options: { url: { type: 'string' } } }).values;
const openai = new OpenAI({ baseURL: `${args.url}/v1`, apiKey: 'none', maxRetries: 0, timeout: 10_000 });
const anthropic = new Anthropic({ baseURL: args.url, apiKey: 'none', maxRetries: 0, timeout: 10_000 });

const schema = { type: 'object', properties: { city: { type: 'string' } } };
const weather = '{"city": "Reykjav\u00edk", "days": 3, "note": "a \\"<tool_call>\\" b"}';
const chatTools = ['get_weather', 'get_time'].map((name) => ({
  type: 'function', function: { name, description: `${name} of a city`, parameters: schema },
}));
const user = (content) => ({ role: 'user', content });

async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe('chat completions', () => {
  const body = { model: 'script', tools: chatTools };

  test('a call, whole', async () => {
    const answer = await openai.chat.completions.create({ ...body, messages: [user('weather')] });
    const { message, finish_reason } = answer.choices[0];
    assert.equal(finish_reason, 'tool_calls');
    assert.equal(message.content, 'Let me look.');
    assert.equal(message.reasoning_content, 'The user wants the weather.');
    assert.deepEqual(message.tool_calls.map((c) => c.function), [{ name: 'get_weather', arguments: weather }]);
    assert.match(message.tool_calls[0].id, /^call_[0-9a-f]{24}$/);
    assert.ok(answer.usage.completion_tokens_details.reasoning_tokens > 0);
  });

  test('a call, streamed: told once, then only more of its arguments', async () => {
    const chunks = await all(await openai.chat.completions.create({ ...body, messages: [user('weather')], stream: true }));
    const deltas = chunks.flatMap((c) => c.choices).map((c) => c.delta);
    const calls = deltas.flatMap((d) => d.tool_calls ?? []);
    assert.equal(calls[0].function.name, 'get_weather');
    assert.ok(calls.length > 3, 'arguments come as they are written');
    for (const call of calls.slice(1)) assert.deepEqual(Object.keys(call), ['index', 'function']);
    assert.equal(calls.map((c) => c.function.arguments).join(''), weather);
    assert.equal(deltas.map((d) => d.content ?? '').join(''), 'Let me look.');
    assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
  });

  test('the helper of the library puts them together', async () => {
    const stream = openai.chat.completions.stream({ ...body, messages: [user('two')] });
    const { message } = (await stream.finalChatCompletion()).choices[0];
    assert.deepEqual(message.tool_calls.map((c) => c.function.arguments), ['{}', '{"zone": "UTC"}']);
    assert.notEqual(message.tool_calls[0].id, message.tool_calls[1].id);
  });

  test('runTools: the call, its result, the reply', async () => {
    const asked = [];
    const tools = chatTools.map((tool) => ({
      ...tool,
      function: { ...tool.function, parse: JSON.parse, function: (values) => { asked.push(values); return '4 degrees'; } },
    }));
    const runner = openai.chat.completions.runTools({ model: 'script', tools, messages: [user('weather')] });
    assert.equal(await runner.finalContent(), 'It has 4 degrees there.');
    assert.deepEqual(asked, [JSON.parse(weather)]);
  });

  test('one call at most; none at all', async () => {
    const one = await openai.chat.completions.create({ ...body, messages: [user('two')], parallel_tool_calls: false });
    assert.equal(one.choices[0].message.tool_calls.length, 1);
    assert.equal(one.choices[0].finish_reason, 'tool_calls');
    const none = await openai.chat.completions.create({ ...body, messages: [user('two')], tool_choice: 'none' });
    assert.equal(none.choices[0].message.tool_calls, undefined);
    assert.match(none.choices[0].message.content, /^<tool_call>/);
    assert.equal(none.choices[0].finish_reason, 'stop');
    assert.equal(one.usage.prompt_tokens, none.usage.prompt_tokens, 'tool_choice changes no prompt');
    await assert.rejects(openai.chat.completions.create({ ...body, messages: [user('two')], tool_choice: 'required' }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === 'tool_choice');
  });

  test('a cut call ends with length, its arguments as far as they came', async () => {
    const whole = await openai.chat.completions.create({ ...body, messages: [user('weather')] });
    const cut = await openai.chat.completions.create({
      ...body, messages: [user('weather')], max_completion_tokens: whole.usage.completion_tokens - 12,
    });
    assert.equal(cut.choices[0].finish_reason, 'length');
    const part = cut.choices[0].message.tool_calls[0].function.arguments;
    assert.ok(part.length > 0 && part.length < weather.length && weather.startsWith(part), part);
  });
});

describe('responses', () => {
  const tools = chatTools.map((t) => ({ type: 'function', name: t.function.name, parameters: schema, strict: false }));

  test('a text', async () => {
    const answer = await openai.responses.create({ model: 'script', input: 'Hello.', instructions: 'Be brief.' });
    assert.equal(answer.output_text, 'It is a plain answer, in two sentences. This is the second.');
    assert.equal(answer.status, 'completed');
    assert.equal(answer.store, false);
    assert.equal(answer.usage.total_tokens, answer.usage.input_tokens + answer.usage.output_tokens);
  });

  test('reasoning, a call, its result', async () => {
    const first = await openai.responses.create({ model: 'script', input: 'weather', tools });
    assert.deepEqual(first.output.map((item) => item.type), ['reasoning', 'message', 'function_call']);
    const call = first.output[2];
    assert.equal(call.arguments, weather);
    const input = [user('weather'), ...first.output, { type: 'function_call_output', call_id: call.call_id, output: '4' }];
    const second = await openai.responses.create({ model: 'script', input, tools });
    assert.equal(second.output_text, 'It has 4 degrees there.');
    assert.ok(second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens - 1,
      'the first prompt is not computed again');
  });

  test('the events of a stream', async () => {
    const stream = await openai.responses.create({ model: 'script', input: 'weather', tools, stream: true });
    const events = await all(stream);
    assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => i));
    assert.equal(events[0].type, 'response.created');
    assert.equal(events.at(-1).type, 'response.completed');
    const text = (type) => events.filter((e) => e.type === type).map((e) => e.delta).join('');
    assert.equal(text('response.output_text.delta'), 'Let me look.');
    assert.equal(text('response.function_call_arguments.delta'), weather);
    assert.equal(text('response.reasoning_text.delta'), 'The user wants the weather.');
    const done = events.filter((e) => e.type === 'response.output_item.done').map((e) => e.item);
    assert.deepEqual(events.at(-1).response.output, done);
  });

  test('the helper of the library', async () => {
    const stream = openai.responses.stream({ model: 'script', input: 'Hello.' });
    assert.equal((await stream.finalResponse()).output[0].content[0].text,
      'It is a plain answer, in two sentences. This is the second.');
  });

  test('an answer that is cut', async () => {
    const cut = { model: 'script', input: 'Hello.', max_output_tokens: 5 };
    const events = await all(await openai.responses.create({ ...cut, stream: true }));
    assert.equal(events.at(-1).type, 'response.incomplete');
    for (const answer of [await openai.responses.create(cut), events.at(-1).response]) {
      assert.equal(answer.status, 'incomplete');
      assert.equal(answer.incomplete_details.reason, 'max_output_tokens');
      assert.equal(answer.output[0].status, 'incomplete');
      assert.ok('It is a plain answer'.startsWith(answer.output[0].content[0].text));
    }
  });

  test('nothing is stored', async () => {
    await assert.rejects(openai.responses.create({ model: 'script', input: 'a', previous_response_id: 'resp_1' }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === 'previous_response_id');
  });
});

describe('messages', () => {
  const tools = chatTools.map((t) => ({ name: t.function.name, description: 'a tool', input_schema: schema }));
  const body = { model: 'script', max_tokens: 200, tools };

  test('a text', async () => {
    const answer = await anthropic.messages.create({ ...body, system: 'Be brief.', messages: [user('Hello.')] });
    assert.deepEqual(answer.content,
      [{ type: 'text', text: 'It is a plain answer, in two sentences. This is the second.' }]);
    assert.equal(answer.stop_reason, 'end_turn');
    const again = await anthropic.messages.create({ ...body, system: 'Be brief.', messages: [user('Hello.')] });
    const { input_tokens, cache_read_input_tokens } = again.usage;
    assert.equal(input_tokens, 1, 'all but the last token was kept');
    const count = await anthropic.messages.countTokens({ model: 'script', tools, system: 'Be brief.', messages: [user('Hello.')] });
    assert.equal(count.input_tokens, input_tokens + cache_read_input_tokens);
  });

  test('a call and its result', async () => {
    const first = await anthropic.messages.create({ ...body, messages: [user('weather')] });
    assert.equal(first.stop_reason, 'tool_use');
    assert.deepEqual(first.content.map((b) => b.type), ['thinking', 'text', 'tool_use']);
    assert.deepEqual(first.content[2].input, JSON.parse(weather));
    const second = await anthropic.messages.create({
      ...body,
      messages: [user('weather'), { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: first.content[2].id, content: '4 degrees' }] }],
    });
    assert.equal(second.content[0].text, 'It has 4 degrees there.');
  });

  test('a stream, put together by the library', async () => {
    const stream = anthropic.messages.stream({ ...body, messages: [user('weather')] });
    let json = '';
    stream.on('inputJson', (part) => { json += part; });
    const message = await stream.finalMessage();
    assert.equal(json, weather);
    assert.deepEqual(message.content[2].input, JSON.parse(weather));
    assert.equal(message.content[0].thinking, 'The user wants the weather.');
    assert.equal(message.stop_reason, 'tool_use');
    assert.ok(message.usage.output_tokens > 20);
  });

  test('stop sequences, and an answer that is cut', async () => {
    const stopped = await anthropic.messages.create({ ...body, messages: [user('Hello.')], stop_sequences: ['two '] });
    assert.equal(stopped.stop_reason, 'stop_sequence');
    assert.equal(stopped.stop_sequence, 'two ');
    assert.equal(stopped.content[0].text, 'It is a plain answer, in ');
    const cut = await anthropic.messages.create({ ...body, max_tokens: 3, messages: [user('Hello.')] });
    assert.equal(cut.stop_reason, 'max_tokens');
    assert.equal(cut.usage.output_tokens, 3);
  });

  test('errors in their form', async () => {
    await assert.rejects(anthropic.messages.create({ model: 'script', max_tokens: 5, messages: [] }),
      (e) => e instanceof Anthropic.BadRequestError && e.error.error.type === 'invalid_request_error');
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } };
    await assert.rejects(anthropic.messages.create({ ...body, messages: [user([image])] }),
      (e) => e instanceof Anthropic.BadRequestError && /messages\[0\]\.content\[0\]/.test(e.message));
    await assert.rejects(anthropic.messages.create({ ...body, tool_choice: { type: 'any' }, messages: [user('a')] }),
      Anthropic.BadRequestError);
    await assert.rejects(anthropic.beta.messages.create({ ...body, messages: [user('word '.repeat(9000))] }),
      (e) => e instanceof Anthropic.BadRequestError && /maximum context length/.test(e.message));
  });
});

after(async () => {
  const { models } = await (await fetch(`${args.url}/v1/scheduler`)).json();
  assert.equal(models.script.running, 0, 'nothing runs at the end');
});
