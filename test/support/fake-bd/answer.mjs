// The answers of a healthy fake bd; its tasks are in a file below `.beads`.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { run } from './commands.mjs';
import { families } from './families.mjs';

const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const locked = (folder, work) => {
  const lock = join(folder, 'fake.lock');
  for (let tries = 0; ; tries += 1)
    try {
      mkdirSync(lock);
      break;
    } catch {
      if (tries > 2_000 || (existsSync(lock) && Date.now() - statSync(lock).mtimeMs > 5_000))
        rmdirSync(lock);
      wait(5);
    }
  try {
    return work();
  } finally {
    rmdirSync(lock);
  }
};

const load = (data) => (existsSync(data) ? JSON.parse(readFileSync(data, 'utf8')) : null);
const save = (data, state) => {
  mkdirSync(join(data, '..'), { recursive: true });
  writeFileSync(`${data}.new`, JSON.stringify(state));
  renameSync(`${data}.new`, data);
};

/** Options that read text from stdin. */
export const takesInput = (argv) =>
  argv.includes('--body-file=-') || argv.includes('--description=-');

/** `env`: the names of its variables. */
export const recordCall = ({ calls }, argv, env, pid) =>
  appendFileSync(calls, `${JSON.stringify({ argv, env, pid })}\n`);

/** `envelope`: true when the environment asks for it. @returns code, stdout and stderr */
export const answer = ({ family: name, argv, cwd, input, envelope }) => {
  const family = families[name];
  const folder = join(cwd, '.beads');
  const file = join(folder, family.database);
  const data = family.database === 'embeddeddolt' ? join(file, 'tasks.json') : file;
  const call = { argv, family, input, folder, envelope };
  if (argv[0] === 'version' || (argv[0] !== 'init' && !existsSync(folder)))
    return run({ ...call, state: null });
  mkdirSync(folder, { recursive: true });
  return locked(folder, () => {
    const result = run({ ...call, state: load(data) });
    if (result.state) save(data, result.state);
    return result;
  });
};
