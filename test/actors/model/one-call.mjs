// A process of its own, because Node reads NODE_EXTRA_CA_CERTS at its start only. Prints the last
// event of one call.
import { createOpenAiModel } from '../../../build/actors/model/openai/openai.js';
import { createProviderFetch } from '../../../build/actors/model/provider-fetch.js';

const [protocol, baseURL] = process.argv.slice(2);
const fetch = createProviderFetch(process.env);
const model = createOpenAiModel({ protocol, apiKey: 'sk-test-key-0123456789', baseURL, fetch });
const request = {
  model: 'some-model',
  asker: { taskId: 'bd-a', role: 'engineer', title: 'A task', attempt: 1 },
  idempotencyKey: 'bd-a#1/think:1',
  system: 'You are an engineer.',
  messages: [{ role: 'user', text: 'Do it.' }],
  tools: [],
  maxTokens: 1_000,
};
let last;
for await (const event of model.ask(request, new AbortController().signal)) last = event;
process.stdout.write(JSON.stringify(last));
