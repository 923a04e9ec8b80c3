// What fake assistants do, good and bad: the task's description says which (`play: hang`); a
// program's own words for it are its wire. Every run is written down in `runs.jsonl`.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';

const forever = () => new Promise(() => setInterval(() => {}, 60_000));
const raw = (bytes) => new Promise((resolve) => process.stdout.write(bytes, resolve));
const line = (value) => raw(`${JSON.stringify(value)}\n`);

/** A process that leaves the group, as a daemon does, and that does not end for a SIGTERM. */
const daemon = () => {
  const script = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1_000)";
  const child = spawn(process.execPath, ['-e', script], { detached: true, stdio: 'ignore' });
  child.unref();
  writeFileSync('daemon', String(child.pid));
};

/** The file of `--mcp-config`, as claude reads it. */
const serversFile = () => {
  const given = process.argv.find((arg) => arg.startsWith('--mcp-config='));
  return given === undefined
    ? null
    : JSON.parse(readFileSync(given.slice(given.indexOf('=') + 1), 'utf8'));
};

const parts = async (_wire, values) => {
  for (const value of values) await line(value);
};

/** The digests of the images whose files the prompt names. */
export const imagesIn = (prompt) =>
  [...prompt.matchAll(/^- (\/\S+\/image-\d+\.\w+)$/gm)]
    .map(([, path]) => createHash('sha256').update(readFileSync(path)).digest('hex'))
    .join(' ');

const plays = {
  sees: async (wire, { prompt }) => {
    const text = `I see ${imagesIn(prompt)}`;
    await parts(wire, [...wire.turn({ text }), ...wire.result(text)]);
  },
  well: async (wire, { prompt }) => {
    const isSentBack = prompt.includes('not accepted yet');
    writeFileSync('made.txt', isSentBack ? 'right' : 'first');
    await parts(wire, [
      ...wire.turn({
        text: 'I begin ☃.',
        tool: { name: 'command', input: 'make it', output: 'made it' },
      }),
      ...wire.turn({ wrote: 'made.txt' }),
      ...wire.turn({ text: isSentBack ? 'mended' : 'made' }),
      ...wire.result(isSentBack ? 'mended' : 'made'),
    ]);
  },
  fails: async (wire) => {
    await parts(wire, wire.failure('unexpected status 401 Unauthorized'));
    process.exitCode = 1;
  },
  fails_in_json: async (wire) => {
    const error = { type: 'invalid_request_error', message: 'no such model' };
    await parts(wire, wire.failure(`API Error: 400 ${JSON.stringify({ type: 'error', error })}`));
    process.exitCode = 1;
  },
  busy: async (wire) => {
    await parts(wire, wire.failure('exceeded retry limit, last status: 429 Too Many Requests'));
    process.exitCode = 1;
  },
  limited: async (wire) => {
    writeFileSync('half.txt', 'half');
    await parts(wire, [
      ...wire.turn({ tool: { name: 'command', input: 'begin', output: 'begun' } }),
      ...wire.limited(),
    ]);
    process.exitCode = 1;
  },
  /** Only claude tells the HTTP status. */
  throttled: async (wire, { prompt }) => {
    const pause = /pause: (\w+)/.exec(prompt)?.[1];
    await parts(wire, wire.throttled(pause));
    process.exitCode = 1;
  },
  gives_up: async (wire) => {
    const text = 'FAILED: the file is not there';
    await parts(wire, [...wire.turn({ text }), ...wire.result(text)]);
  },
  waits: async (wire) => {
    while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20));
    await parts(wire, [...wire.turn({ text: 'waited' }), ...wire.result('waited')]);
  },
  hang: async () => forever(),
  stubborn: async () => {
    process.on('SIGTERM', () => {});
    await forever();
  },
  daemon: async () => {
    daemon();
    await forever();
  },
  leaves_daemon: async (wire) => {
    daemon();
    await parts(wire, [...wire.turn({ text: 'left one' }), ...wire.result('left one')]);
  },
  lingers: async (wire) => {
    await parts(wire, [...wire.turn({ text: 'here it is' }), ...wire.result('here it is')]);
    await forever();
  },
  silent: async (wire) => {
    await parts(wire, wire.turn({ tool: { name: 'command', input: 'x', output: 'y' } }));
  },
  hangs_in_a_tool: async (wire) => {
    await parts(
      wire,
      wire.turn({ tool: { name: 'command', input: 'x', output: 'y', hangs: true } }),
    );
    await forever();
  },
  starts_nothing: async (wire) => {
    const output = 'bwrap: Creating new namespace failed: nesting depth exceeded (ENOSPC)\n';
    for (const input of ['one', 'two'])
      await parts(wire, wire.turn({ tool: { name: 'command', input, output, failed: true } }));
    await parts(wire, [...wire.turn({ text: 'all is well' }), ...wire.result('all is well')]);
  },
  throws: async () => {
    const { createRequire } = await import('node:module');
    setImmediate(() => createRequire(import.meta.url)('/nowhere/plugin.cjs'));
    await forever();
  },
  breaks: async () => {
    process.stderr.write('\x1b[31msomething\x1b[0m\n\x1b]0;title\x07the last words\n');
    process.exitCode = 3;
  },
  split: async (wire) => {
    const whole = Buffer.from(
      [...wire.turn({ text: 'Schnee ☃ 雪\u2028 𝒳' }), ...wire.result('Schnee ☃ 雪\u2028 𝒳')]
        .map((value) => JSON.stringify(value))
        .join('\n'),
    );
    for (const byte of whole) {
      await raw(Buffer.of(byte));
      if (byte > 0x7f) await new Promise((resolve) => setTimeout(resolve, 2));
    }
  },
  one_long_line: async (wire) => {
    const piece = 'x'.repeat(1024 * 1024);
    for (let written = 0; written < 12; written += 1) await raw(piece);
    await raw('\n');
    await parts(wire, [...wire.turn({ text: 'after it' }), ...wire.result('after it')]);
  },
  flood: async (wire) => {
    const many = wire
      .turn({ text: 'y'.repeat(1_000) })
      .map((value) => `${JSON.stringify(value)}\n`)
      .join('')
      .repeat(200);
    for (;;) await raw(many);
  },
  spends: async (wire) => {
    for (let turn = 0; turn < 1_000; turn += 1) {
      await parts(
        wire,
        wire.turn({ tool: { name: 'command', input: `turn ${turn}`, output: 'so' } }),
      );
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  },
  nonsense: async (wire) => {
    await raw('Warning: this is no JSON\n{"type":\n[]\nnull\n{"type":"surprise"}\n');
    await parts(wire, [...wire.turn({ text: 'all the same' }), ...wire.result('all the same')]);
  },
};

/** Reads the prompt to its end, says which session it is, and plays. */
export const play = async (wire, { session }) => {
  const prompt = readFileSync(0, 'utf8');
  const known = JSON.parse(readMaybe('sessions.json') ?? '{}');
  const isNew = session === null;
  const id = session ?? `session-${Object.keys(known).length + 1}`;
  const calls = known[id]?.calls ?? 0;
  const name = /play: (\w+)/.exec(isNew ? prompt : known[id]?.prompt)?.[1] ?? 'well';
  appendFileSync(
    'runs.jsonl',
    `${JSON.stringify({ argv: process.argv.slice(2), prompt, env: process.env, id, servers: serversFile() })}\n`,
  );
  const keep = (more) =>
    writeFileSync(
      'sessions.json',
      JSON.stringify({ ...known, [id]: { prompt: known[id]?.prompt ?? prompt, calls: more } }),
    );
  keep(calls);
  wire.begin({ before: calls, keep });
  await parts(wire, wire.session(id));
  // The second run of what hung, or met a limit, goes well.
  const again = !isNew && ['hang', 'stubborn', 'daemon', 'limited', 'waits'].includes(name);
  await plays[again ? 'well' : name](wire, { prompt });
};

const readMaybe = (file) => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};
