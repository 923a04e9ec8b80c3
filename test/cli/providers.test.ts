import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  askedPlace,
  placeOfModel,
  providerSecrets,
  withChosenModel,
} from '../../src/cli/config/providers.ts';
import { configSchema } from '../../src/cli/config/schema/config-schema.ts';
import { temporaryFolder } from '../support/temporary.ts';

const placed = (given: object, requested: string, env: NodeJS.ProcessEnv) => {
  const { provider, model, key } = placeOfModel(configSchema.parse(given), requested, env);
  return `${provider.name} (${provider.type}) ${provider.baseURL} ${model} ${key}`;
};
const openai = 'openai (openai) https://api.openai.com/v1';
const anthropic = 'anthropic (anthropic) https://api.anthropic.com/v1';
const own = { api: { base_url: 'http://127.0.0.1:1/v1' } };
const proxy = { api: { mode: 'proxy', proxy: { base_url: 'http://127.0.0.1:2' } } };
const mine = { mine: { base_url: 'http://ollama:1/v1' } };
const work = { type: 'anthropic', base_url: 'http://10.0.0.7:4000', key_env: 'WORK_KEY' };
const aws = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's' };
const vpc = { type: 'bedrock', base_url: 'https://bedrock-runtime.eu-west-1.amazonaws.com' };
const google = {
  ...{ GOOGLE_VERTEX_PROJECT: 'p', GOOGLE_VERTEX_LOCATION: 'europe-west1' },
  GOOGLE_APPLICATION_CREDENTIALS: '/credentials.json',
};
const both = { OPENAI_API_KEY: 'o', ANTHROPIC_API_KEY: 'a' };

test.each<[string, object, string, NodeJS.ProcessEnv, string]>([
  ['a bare name', {}, 'gpt-5.1', both, `${openai} gpt-5.1 o`],
  ['a bare name without any key', {}, 'gpt-5.1', {}, `${openai} gpt-5.1 null`],
  ['with the key of another', {}, 'sonnet', { ANTHROPIC_API_KEY: 'a' }, `${anthropic} sonnet a`],
  ['a provider before it', {}, 'anthropic/sonnet', both, `${anthropic} sonnet a`],
  [
    ...(['a name with two slashes', {}, 'openrouter/anthropic/x', {}] as const),
    'openrouter (openai) https://openrouter.ai/api/v1 anthropic/x null',
  ],
  ['a maker who is no provider', {}, 'meta/llama', both, `${openai} meta/llama o`],
  [
    ...(['an address of your own, as before', own, 'anthropic/x', both] as const),
    'openai (openai) http://127.0.0.1:1/v1 anthropic/x o',
  ],
  [
    ...(['a proxy, as before', proxy, 'anthropic/x', both] as const),
    'openai (openai) http://127.0.0.1:2 anthropic/x o',
  ],
  [
    ...(['it, beside a provider', { ...own, providers: mine }, 'mine/x', both] as const),
    'mine (openai) http://ollama:1/v1 x none',
  ],
  [
    ...(['a variable of your own', { providers: { work } }, 'work/x', { WORK_KEY: 'w' }] as const),
    'work (anthropic) http://10.0.0.7:4000 x w',
  ],
  [
    ...(['an address without a version', {}, 'anthropic/x'] as const),
    { ANTHROPIC_BASE_URL: 'https://gateway.example' },
    'anthropic (anthropic) https://gateway.example/v1 x null',
  ],
  [
    ...(['the second variable of Google', {}, 'google/x', { GOOGLE_API_KEY: 'g' }] as const),
    'google (google) https://generativelanguage.googleapis.com/v1beta x g',
  ],
  [
    ...(['a server of this machine', {}, 'ollama/qwen', {}] as const),
    'ollama (openai) http://127.0.0.1:11434/v1 qwen none',
  ],
  [
    ...(['a region of AWS', {}, 'bedrock/x', { AWS_REGION: 'eu-west-1', ...aws }] as const),
    'bedrock (bedrock) https://bedrock-runtime.eu-west-1.amazonaws.com x ',
  ],
  [
    ...(['a key of Bedrock', {}, 'bedrock/x'] as const),
    { AWS_DEFAULT_REGION: 'us-east-1', AWS_BEARER_TOKEN_BEDROCK: 'b', ...aws },
    'bedrock (bedrock) https://bedrock-runtime.us-east-1.amazonaws.com x b',
  ],
  ['AWS without a region', {}, 'bedrock/x', aws, 'bedrock (bedrock) null x null'],
  [
    ...(['half of the credentials', {}, 'bedrock/x'] as const),
    { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'a' },
    'bedrock (bedrock) https://bedrock-runtime.eu-west-1.amazonaws.com x null',
  ],
  [
    ...(['a region in the address', { providers: { work: vpc } }, 'work/x', aws] as const),
    'work (bedrock) https://bedrock-runtime.eu-west-1.amazonaws.com x ',
  ],
  [
    ...(['a key of Vertex', {}, 'vertex/x', { GOOGLE_VERTEX_API_KEY: 'v' }] as const),
    'vertex (vertex) https://aiplatform.googleapis.com/v1 x v',
  ],
  [
    ...(['a project of Google', {}, 'vertex/x', google] as const),
    'vertex (vertex) https://europe-west1-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west1 x ',
  ],
  [
    ...(['a project without credentials', {}, 'vertex/x'] as const),
    { ...google, GOOGLE_APPLICATION_CREDENTIALS: '', HOME: '/nonexistent' },
    'vertex (vertex) https://europe-west1-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west1 x null',
  ],
  ['a property of every object', {}, 'constructor/x', both, `${openai} constructor/x o`],
])('a model by %s', (_, given, requested, env, expected) => {
  expect(placed(given, requested, env)).toBe(expected);
});

test.each([
  ['0.0.0.0', '127.0.0.1:11434'],
  [':2222', '127.0.0.1:2222'],
  ['gpu.local:3333', 'gpu.local:3333'],
  ['http://gpu.local', 'gpu.local'],
])('OLLAMA_HOST=%s is %s', (OLLAMA_HOST, host) => {
  expect(placed({}, 'ollama/x', { OLLAMA_HOST })).toBe(`ollama (openai) http://${host}/v1 x none`);
});

test('a key file wins over the variable, and one that is missing is told by its name', () => {
  const key_file = join(temporaryFolder(), 'key');
  const given = { providers: { openai: { key_file } } };
  expect(() => placed(given, 'gpt', both)).toThrow(/providers\.openai\.key_file/);

  writeFileSync(key_file, 'key-of-the-file\n');
  chmodSync(key_file, 0o644);
  expect(() => placed(given, 'gpt', both)).toThrow(/is readable by others; run: chmod 600/);
  chmodSync(key_file, 0o600);

  expect(placed(given, 'gpt', both)).toBe(`${openai} gpt key-of-the-file`);
});

test.each<[NodeJS.ProcessEnv, object, string]>([
  [{ ANTHROPIC_API_KEY: 'k' }, {}, 'anthropic/claude-sonnet-4-5'],
  [{ GEMINI_API_KEY: 'k' }, {}, 'google/gemini-2.5-pro'],
  [{ OPENROUTER_API_KEY: 'k' }, {}, 'openrouter/anthropic/claude-sonnet-4.5'],
  [both, {}, 'gpt-5.1'],
  [{}, {}, 'gpt-5.1'],
  [{ ANTHROPIC_API_KEY: 'k' }, { api: { provider_model: 'sonnet' } }, 'sonnet'],
  [{ ANTHROPIC_API_KEY: 'k' }, own, 'gpt-5.1'],
])('with %o and %o agents use %s', (env, given, model) => {
  const loaded = {
    ...{ config: configSchema.parse(given), file: '', files: [], layers: [] },
    ...{ named: null, fileChosen: false, portChosen: false, policies: [], policyWarnings: [] },
  };

  expect(withChosenModel(loaded, env).config.api.provider_model).toBe(model);
});

test.each<[NodeJS.ProcessEnv, object, string]>([
  [{}, {}, 'ollama/qwen'],
  [{ OPENAI_API_KEY: 'k' }, {}, 'gpt-5.1'],
  [{ ANTHROPIC_API_KEY: 'k' }, {}, 'anthropic/claude-sonnet-4-5'],
  [{}, { api: { provider_model: 'gpt-4o' } }, 'gpt-4o'],
  [{}, own, 'gpt-5.1'],
])('beside a local server, with %o and %o agents use %s', (env, given, model) => {
  const loaded = {
    ...{ config: configSchema.parse(given), file: '', files: [], layers: [] },
    ...{ named: null, fileChosen: false, portChosen: false, policies: [], policyWarnings: [] },
  };

  expect(withChosenModel(loaded, env, { local: 'ollama/qwen' }).config.api.provider_model).toBe(
    model,
  );
});

test('keys of providers and headers that hold one are secret, other headers are not', () => {
  const headers = { 'x-team': 'basket', 'x-api-key': 'of a gateway' };
  const config = configSchema.parse({ providers: { work: { ...work, headers }, mine: {} } });

  expect(providerSecrets(config, { WORK_KEY: 'w' })).toEqual(['w', 'of a gateway']);
});

test('the missing key is named after the provider', () => {
  const config = configSchema.parse({ providers: { work } });
  const missing = (model: string): string => askedPlace({ config }, model).missing;

  expect(['gpt', 'anthropic/x', 'work/x'].map(missing)).toEqual([
    ...['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'WORK_KEY'],
  ]);
  expect(missing('bedrock/x')).toMatch(/AWS_REGION .* AWS_BEARER_TOKEN_BEDROCK/);
});

test.each(['azure', 'mine'])('the key of %s goes nowhere before it has an address', (name) => {
  const config = configSchema.parse({ providers: { mine: { key_env: 'MINE_KEY' } } });
  const env = { AZURE_OPENAI_API_KEY: 'a', MINE_KEY: 'm' };

  expect(placeOfModel(config, `${name}/gpt`, env).provider.baseURL).toBe(null);
  expect(askedPlace({ config }, `${name}/gpt`)).toMatchObject({
    missing: `providers.${name}.base_url`,
    remedy: `set the address of ${name}: agent config set providers.${name}.base_url <address>`,
  });
});

test('a second account of OpenAI has its address', () => {
  const config = configSchema.parse({ providers: { mine: { type: 'openai', key_env: 'K' } } });

  expect(placeOfModel(config, 'mine/gpt', {}).provider.baseURL).toBe('https://api.openai.com/v1');
});

test.each([
  ['http://192.168.1.4:1234/v1', true],
  ['http://ollama.local:11434/v1', true],
  ['http://gpu:8000/v1', true],
  ['http://[fd00::1]:8000/v1', true],
  ['http://api.example.com/v1', false],
  ['http://8.8.8.8/v1', false],
  ['http://169.254.169.254/v1', false],
  ['https://me:secret@api.example.com/v1', false],
  ['https://me@api.example.com/v1', false],
])('%s may be the address of a provider: %s', (base_url, isAllowed) => {
  expect(configSchema.safeParse({ providers: { mine: { base_url } } }).success).toBe(isAllowed);
});
