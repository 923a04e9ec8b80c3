import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { answersIn } from '../../src/actors/agent/prompt.ts';
import { errorSentence } from '../../src/actors/assistants/error-sentence.ts';
import { usageLimitIn } from '../../src/actors/assistants/usage-meter.ts';
import { linesIn } from '../../src/actors/engine/service/review-task.ts';
import { protectionOf } from '../../src/actors/files/protected-paths.ts';
import type { StepEvidence } from '../../src/actors/gates/evidence.ts';
import { judgeInThread } from '../../src/actors/gates/judge.ts';
import { parseLine } from '../../src/actors/ledger/issue-line.ts';
import { cleanTools, resultText } from '../../src/actors/mcp/tool-list.ts';
import {
  createChatAssembly,
  createOpenAiChatModel,
  textCallsIn,
} from '../../src/actors/model/openai/openai-chat.ts';
import { createResponseAssembly } from '../../src/actors/model/openai/openai-responses.ts';
import { createEventReader, createLineSplitter } from '../../src/actors/process/line-splitter.ts';
import { fencedBlock } from '../../src/actors/results/results.ts';
import { editTool } from '../../src/actors/tools/edit.ts';
import { findTool } from '../../src/actors/tools/find.ts';
import { findTests } from '../../src/actors/tools/glob.ts';
import { grepTool } from '../../src/actors/tools/grep.ts';
import { readTool } from '../../src/actors/tools/read.ts';
import { readBdAnswer } from '../../src/actors/tracker/bd/answer.ts';
import { parseRole } from '../../src/cli/roles/parse-role.ts';
import { projectRole } from '../../src/cli/roles/role-schema.ts';
import { parseWorkflow } from '../../src/cli/workflows/find-workflow.ts';
import type { WorkflowCheck } from '../../src/machines/workflow/workflow-definition.ts';
import { filesIn } from '../../web/model/diff.ts';
import { oneLine } from '../../web/model/format.ts';
import { idNamed, matches } from '../../web/model/search.ts';
import { createWorkbench } from '../actors/agent/workbench.ts';
import { ask } from '../contracts/model.ts';

const length = 2 * 1024 * 1024;
const of = (text: string): string => text.repeat(Math.ceil(length / text.length)).slice(0, length);

const shapes: Readonly<Record<string, string>> = {
  plus: of('+'),
  headings: of('# a\n'),
  'heading marks': of('#'),
  'headings of falling levels': of('# a\n## b\n### c\n###### d\n'),
  spaces: `x${of(' ')}x`,
  newlines: of('\n'),
  CRLF: of('\r\n'),
  'lone CR': of('\r{'),
  letters: of('a'),
  tags: of('<'),
  brackets: of('['),
  'closed brackets': of('[') + of(']'),
  backticks: of('`'),
  'fences that nothing closes': of('````\n'),
  'runs of backticks': of('` '),
  quotes: of('"'),
  'single quotes': of("'"),
  'a table': of('|-'),
  'combining marks': of('\u0301\u0323'),
  'zero-width characters': of('a\u200b'),
  'a comment that nothing ends': `<!--${of('-')}`,
  comments: of('<!--'),
  'an attribute that nothing ends': `<a b="${of('=')}`,
  'XML elements': of('<testcase name="a">'),
  'XML attributes': `<testsuite ${of('a="b" ')}>`,
  'nested JSON': of('{"a":'),
  'JSON objects': `[${of('{"a":1},')}{}]`,
  'JSON in a string': JSON.stringify(of('{"')),
  'a coverage profile': `mode: set\n${of('a:1.1,1.1 ')}`,
  'a plan of tests': `TAP version 13\nok ${of('\\#')}`,
  'references to files': of('a.b/'),
  places: of('a.ts:1 '),
  questions: of('- Q1: a?\n'),
  'question numbers': of('Q1 '),
  'Next steps': of('Next steps\n- a\n'),
  'tool calls': of('<tool_call>'),
  'closed tool calls': of('<tool_call></tool_call>'),
  'hunks of a diff': `diff --git a/a b/a\n${of('@@ -1 +1 @@\n')}`,
  'files of a diff': of('diff --git a/a b/a\n'),
  'blocked tasks': of('blocked by ['),
  'YAML sequences': of('- '),
  'YAML maps': of('? '),
  'YAML aliases': `a: &a [x]\n${of('b: *a\n')}`,
  comment: `Comment 1: ${of('-')}`,
  'numbers of comments': `comment 1${of(' ')}`,
};

const checks: readonly WorkflowCheck[] = [
  { check: 'verdict', of: 'a' },
  { check: 'coverage', of: 'a', minimum: 80, reports: ['r'] },
  { check: 'tests', of: 'a', minimum: 1, reports: ['r'] },
  { check: 'sections', of: 'a', path: 'r', sections: ['Objectives', 'Findings'] },
  { check: 'answers', of: 'a', path: 'r', questions: 'r' },
  { check: 'findings', of: 'a', path: 'r', section: 'a' },
  { check: 'next_steps', of: 'a', path: 'r', section: 'a' },
];

const evidence = (text: string): StepEvidence => ({
  ...{ step: 'a', taskId: 'bd-a1', results: text, leaves: [], isVerified: true },
  files: { changed: ['r'], list: async () => ['r'], read: async () => text },
  report: async () => text,
});

const inPieces = (text: string, push: (piece: string) => void, size = 65_536): void => {
  for (let at = 0; at < text.length; at += size) push(text.slice(at, at + size));
};
const chatChunk = (delta: object) => ({ choices: [{ index: 0, delta }] }) as never;
const taskOf = (title: string) => ({ task_id: title, title, labels: [title] }) as never;

const ignore = (): void => {};

/** What a provider sends: in small pieces, as a slow network brings them. */
const sendsOnly = async (text: string, status = 200): Promise<void> => {
  const bytes = Buffer.from(text);
  const server = createServer(async (request, response) => {
    request.resume();
    response.writeHead(status, { 'content-type': 'text/event-stream' });
    for (let at = 0; at < bytes.length && !response.destroyed; at += 1_024)
      if (!response.write(bytes.subarray(at, at + 1_024))) await once(response, 'drain');
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await ask(createOpenAiChatModel({ apiKey: 'x', baseURL: `http://127.0.0.1:${port}/v1` }));
  server.close();
};

const readers: Readonly<Record<string, (text: string) => unknown>> = {
  'answers to comments': (text) => answersIn(text, []),
  'an error of an assistant': (text) => [errorSentence(text), usageLimitIn(text, 0)],
  'a code block': (text) => fencedBlock(text, 'text'),
  'a line of issues.jsonl': (text) => parseLine(text),
  'an MCP result': (text) => resultText({ content: [{ type: 'text', text }] }),
  'the tools of an MCP server': (text) => cleanTools('a', [{ name: 'a', description: text }]),
  'calls in the text of a model': (text) => textCallsIn(text),
  'the stream of a model': (text) => sendsOnly(text),
  'an error of a provider': (text) => sendsOnly(text, 400),
  'an event of a model': (text) =>
    sendsOnly(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`),
  'an answer of a model': (text) => {
    const assembly = createChatAssembly({ textToolCalls: true });
    inPieces(text, (content) => assembly.add(chatChunk({ content, reasoning: content })));
    return [assembly.text(), assembly.calls(), assembly.thinking()];
  },
  'calls of a model': (text) => {
    const assembly = createChatAssembly({ textToolCalls: true });
    const part = (name: string) => ({ id: name, function: { name, arguments: name } });
    inPieces(text, (piece) => assembly.add(chatChunk({ tool_calls: [part(piece)] })), 32);
    return assembly.calls();
  },
  'items of a model': (text) => {
    const assembly = createResponseAssembly();
    let output_index = 0;
    const add = (item: object): void => {
      assembly.add({ type: 'response.output_item.done', output_index, item } as never);
      output_index += 1;
    };
    const addAll = (piece: string): void => {
      add({ type: 'reasoning', id: 'a', encrypted_content: piece });
      add({ type: 'function_call', call_id: piece, name: 'a', arguments: piece });
      add({ type: 'message', content: [{ type: 'output_text', text: piece }] });
    };
    inPieces(text, addAll, 64);
    return [assembly.text(), assembly.calls(), assembly.thinking()];
  },
  'the lines of a program': (text) =>
    inPieces(
      text,
      createLineSplitter({ longest: length * 4, onLine: ignore, onDropped: ignore }).push,
    ),
  'an event stream': (text) =>
    inPieces(
      text,
      createEventReader({ longest: length * 4, onData: ignore, onTooLong: ignore }).push,
    ),
  'an error of bd': (text) =>
    readBdAnswer({
      exitCode: 1,
      stdout: '',
      stderr: text,
      startError: null,
      timedOut: false,
      tooLarge: false,
      signal: null,
    }),
  'a role': (text) => parseRole(Buffer.from(text.slice(0, 16 * 1024)), 'engineer', projectRole),
  'a workflow': (text) => parseWorkflow(Buffer.from(text).subarray(0, 64 * 1024)),
  'the lines of a diff': (text) => linesIn(text),
  'a path': (text) => protectionOf(text),
  'a glob': (text) => findTests(text.slice(0, 1_000)),
  'the diff of the page': (text) => filesIn(text),
  'a line of the page': (text) => oneLine(text),
  'the search of the page': (text) => [
    matches(taskOf(text), text),
    matches(taskOf(text), `${text.slice(0, 400)}\u0000`),
    idNamed(`${text}\u0000`, new Map([['a', taskOf(text)]])),
    idNamed(`${text.slice(0, 400)}\u0000`, new Map([['a', taskOf(text)]])),
  ],
};

/** The best of some tries (ms of CPU): what else the machine does counts little. */
const cpuOf = async (work: () => unknown): Promise<number> => {
  let best = Number.POSITIVE_INFINITY;
  for (let count = 0; count < 3 && best > mostMs; count += 1) {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1_000);
  }
  return best;
};

/** Linear readers take up to 1,000 on a slow machine, one that is quadratic in lines many thousands. */
const mostMs = 3_000;

const slowShapes = async (read: (text: string) => unknown): Promise<readonly string[]> => {
  const slow: string[] = [];
  for (const [shape, text] of Object.entries(shapes)) {
    const ms = await cpuOf(() => read(text));
    if (ms > mostMs) slow.push(`${shape}: ${Math.round(ms)} ms`);
  }
  return slow;
};

/** What a thread's work may hold up the event loop for (ms). */
const blockMs = 50;
const tries = 5;

/** How late the event loop is meanwhile (ms), at the 99th of 100 looks. */
const lateness = async (work: () => unknown): Promise<number> => {
  const delays = monitorEventLoopDelay({ resolution: 5 });
  delays.enable();
  await delay(100);
  await work();
  await delay(100);
  delays.disable();
  return delays.percentile(99) / 1e6;
};

/** The best of some tries beyond what the machine itself is late: others use it, too. */
const blockOf = async (
  work: () => unknown,
  idleWork: () => unknown = () => delay(200),
): Promise<number> => {
  let best = Number.POSITIVE_INFINITY;
  for (let count = 0; count < tries && best > blockMs; count += 1) {
    const idle = await lateness(idleWork);
    best = Math.min(best, (await lateness(work)) - idle);
  }
  return best;
};

/** `isProcess`: also the start of a process holds up the loop, whatever it reads. */
const blockingShapes = async (
  read: (text: string) => unknown,
  isProcess = false,
): Promise<readonly string[]> => {
  const slow: string[] = [];
  for (const [shape, text] of Object.entries(shapes)) {
    const block = await blockOf(() => read(text), isProcess ? () => read('a') : undefined);
    if (block > blockMs) slow.push(`${shape}: ${Math.round(block)} ms`);
  }
  return slow;
};

const slowTest = { tags: ['slow' as const], timeout: 600_000 };

test.each(Object.entries(readers))(
  '%s of 2 MiB is read in linear time',
  slowTest,
  async (_, read) => {
    expect(await slowShapes(read)).toEqual([]);
  },
);

test('grep and find look through 2 MiB in a process, without a stop', slowTest, async () => {
  const { put, context } = await createWorkbench();
  const search = async (text: string): Promise<void> => {
    const name = `${text.replaceAll(/[/\0\n]/g, '').slice(0, 80)}.txt`;
    const pattern = text.slice(0, 1_000);
    await grepTool.run({ pattern, path: '.' }, context);
    await grepTool.run({ pattern: '.', path: '.', glob: pattern }, context);
    await findTool.run({ pattern, path: '.' }, context);
    await findTool.run({ pattern: `*${name}*`, path: '.' }, context);
    await findTool.run({ pattern: 'x', path: text }, context);
  };
  const slow = await blockingShapes(async (text) => {
    await put('file', text);
    await search(text);
  }, true);

  expect(slow).toEqual([]);
});

test.each([grepTool, findTool])('$name refuses a pattern of 2 MiB', ({ schema }) => {
  expect(schema.safeParse({ pattern: of('a') }).success).toBe(false);
});

test.each(checks)('the check $check judges 2 MiB in a thread', slowTest, async (check) => {
  expect(await blockingShapes((text) => judgeInThread(check, evidence(text)))).toEqual([]);
});

test('edit looks for 2 MiB in 2 MiB, and read reads them, without a stop', slowTest, async () => {
  const { put, context } = await createWorkbench();
  const edit = (old_text: string) => ({ old_text, new_text: 'x' });
  const slow = await blockingShapes(async (text) => {
    await put('file', text);
    const edits = [edit(`${text.slice(0, 2)}\u0000${text}`), edit('no such text')];
    await editTool.run({ path: 'file', edits }, context);
    await readTool.run({ path: 'file', offset: 1, limit: 2_000 }, context);
  });

  expect(slow).toEqual([]);
});
