import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { isLong } from '../support/long.ts';
import { startModelServer } from '../support/model-server.ts';
import { npmProgram } from '../support/npm-program.ts';
import { temporaryFolder } from '../support/temporary.ts';
import type { Answer, SeenRequest } from './answer.ts';

/**
 * The programs of the providers themselves, as outside witnesses: our scripted server accepts what
 * they send, and refuses the same request with a planted fault.
 */

type Body = Readonly<Record<string, unknown>>;

interface Witness {
  readonly wanted: string;
  readonly path: RegExp;
  readonly call: { readonly name: string; readonly arguments: object };
  readonly headers: Readonly<Record<string, string>>;
  readonly start: (server: { readonly origin: string; readonly home: string }) => {
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
  /** Planted in a request of the program that has the result of its call. */
  readonly faults: readonly (readonly [name: string, plant: (body: Body) => Body, why: RegExp])[];
}

const command = 'echo made > made.txt';
const prompt = 'Make the file made.txt.';

/** A copy without the objects that `isFault` finds. */
const without = (body: Body, isFault: (value: Body) => boolean): Body =>
  JSON.parse(JSON.stringify(body), (_, value) =>
    Array.isArray(value)
      ? value.filter((each) => typeof each !== 'object' || each === null || !isFault(each))
      : value,
  );

const witnesses: Readonly<Record<string, Witness>> = {
  claude: {
    wanted: '@anthropic-ai/claude-code@2.1.332',
    path: /\/v1\/messages/,
    call: { name: 'Bash', arguments: { command, description: 'make it' } },
    headers: { 'x-api-key': 'fake', 'anthropic-version': '2023-06-01' },
    start: ({ origin }) => ({
      args: ['-p', '--allowedTools', 'Bash', '--output-format', 'text'],
      env: {
        ANTHROPIC_BASE_URL: origin,
        ANTHROPIC_API_KEY: 'fake',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
    }),
    faults: [
      [
        'a result without its call',
        (body) => without(body, (one) => one['type'] === 'tool_use'),
        /tool_use_id|non-empty/,
      ],
      [
        'an empty text',
        (body) => ({
          ...body,
          messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }],
        }),
        /non-empty/,
      ],
    ],
  },
  gemini: {
    wanted: '@google/gemini-cli@0.61.0',
    path: /:streamGenerateContent/,
    call: { name: 'run_shell_command', arguments: { command, description: 'make it' } },
    headers: { 'x-goog-api-key': 'fake' },
    start: ({ origin, home }) => {
      mkdirSync(join(home, '.gemini'));
      const settings = { security: { auth: { selectedType: 'gemini-api-key' } } };
      writeFileSync(join(home, '.gemini/settings.json'), JSON.stringify(settings));
      return {
        args: ['-y', '--skip-trust', '-p', prompt],
        env: { GEMINI_API_KEY: 'fake', GOOGLE_GEMINI_BASE_URL: origin },
      };
    },
    faults: [
      [
        'a lost signature',
        (body) =>
          JSON.parse(JSON.stringify(body).replaceAll('"thoughtSignature":"sealed"', '"x":1')),
        /thought_signature/,
      ],
    ],
  },
  codex: {
    wanted: '@openai/codex@0.171.0',
    path: /\/responses$/,
    call: { name: 'exec_command', arguments: { cmd: command } },
    headers: { authorization: 'Bearer fake' },
    start: ({ origin, home }) => {
      const provider = `name = "scripted"\nbase_url = "${origin}/v1"\nwire_api = "responses"\nenv_key = "CODEX_API_KEY"\n`;
      writeFileSync(
        join(home, 'config.toml'),
        `model_provider = "scripted"\nmodel = "gpt-5.1"\n[analytics]\nenabled = false\n[model_providers.scripted]\n${provider}`,
      );
      const bypass = '--dangerously-bypass-approvals-and-sandbox';
      return {
        args: ['exec', '--skip-git-repo-check', bypass, '-'],
        env: { CODEX_HOME: home, CODEX_API_KEY: 'fake' },
      };
    },
    faults: [
      [
        'an output without its call',
        (body) => without(body, (one) => one['type'] === 'function_call'),
        /No tool call found/,
      ],
      [
        'a call without its output',
        (body) => without(body, (one) => one['type'] === 'function_call_output'),
        /No tool output found/,
      ],
    ],
  },
};

const hasResult = ({ body }: SeenRequest): boolean =>
  /"(tool_result|functionResponse|function_call_output)"/.test(JSON.stringify(body));

test.for(Object.entries(witnesses))(
  'the real %s is understood by our scripted server, which refuses planted faults',
  { timeout: 300_000 },
  async ([name, { wanted, path, call, headers, start, faults }], { skip }) => {
    if (!isLong) return skip('npm run test:long runs the real programs');
    const program = await npmProgram(name, wanted);
    if ('reason' in program) return skip(program.reason);
    const [home, cwd] = [temporaryFolder(), temporaryFolder()];
    const isWork = (seen: SeenRequest): boolean =>
      path.test(seen.path) && JSON.stringify(seen.body).includes(`"${call.name}"`);
    const server = await startModelServer((seen): Answer => {
      if (!isWork(seen) || hasResult(seen)) return { kind: 'answer', text: 'I made it.' };
      const made = { id: 'call_1', name: call.name, arguments: JSON.stringify(call.arguments) };
      return { kind: 'answer', calls: [made] };
    });
    const { args, env } = start({ origin: server.origin, home });

    const ended = await execa(program.path, args, {
      cwd,
      input: prompt,
      env: { PATH: process.env['PATH'] ?? '', HOME: home, TERM: 'dumb', CI: 'true', ...env },
      extendEnv: false,
      reject: false,
      timeout: 120_000,
      killSignal: 'SIGKILL',
    });

    expect(ended.stdout).toContain('I made it.');
    expect(existsSync(join(cwd, 'made.txt'))).toBe(true);
    const last = server.requests.findLast((seen) => isWork(seen) && hasResult(seen));
    expect(last).toBeDefined();
    for (const [fault, plant, why] of [['none', (body: Body) => body, null] as const, ...faults]) {
      const answer = await fetch(`${server.origin}${last?.path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(plant(last?.body ?? {})),
      });
      expect([fault, answer.status]).toEqual([fault, why === null ? 200 : 400]);
      if (why !== null) expect(`400 ${await answer.text()}`).toMatch(why);
    }
  },
);
