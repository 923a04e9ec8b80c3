// A bd for tests: one family of facts/beads, its tasks in a file below `.beads`, faults on demand.
// Called as: node fake-bd.mjs '{"family","calls","faults"}' <arguments of bd>
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

const [setup, ...argv] = process.argv.slice(2);
const { family: name, calls, faults } = JSON.parse(setup);
const family = families[name];
const folder = join(process.cwd(), '.beads');
const file = join(folder, family.database);
const data = family.database === 'embeddeddolt' ? join(file, 'tasks.json') : file;

const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const out = (text) => writeFileSync(1, text);
const err = (text) => writeFileSync(2, text);

/** The next fault that was asked for and fits this call; each counts down in its file. */
const takeFault = () => {
  if (!existsSync(faults)) return null;
  const planned = JSON.parse(readFileSync(faults, 'utf8'));
  const found = planned.find(
    ({ on, times = 1 }) => times > 0 && (on === undefined || argv.slice(0, 2).join(' ').startsWith(on)),
  );
  if (found === undefined) return null;
  found.times = (found.times ?? 1) - 1;
  writeFileSync(`${faults}.new`, JSON.stringify(planned));
  renameSync(`${faults}.new`, faults);
  return found;
};

const locked = (work) => {
  const lock = join(folder, 'fake.lock');
  for (let tries = 0; ; tries += 1)
    try {
      mkdirSync(lock);
      break;
    } catch {
      if (tries > 2_000 || (existsSync(lock) && Date.now() - statSync(lock).mtimeMs > 5_000)) rmdirSync(lock);
      wait(5);
    }
  try {
    return work();
  } finally {
    rmdirSync(lock);
  }
};

const load = () => (existsSync(data) ? JSON.parse(readFileSync(data, 'utf8')) : null);
const save = (state) => {
  mkdirSync(join(data, '..'), { recursive: true });
  writeFileSync(`${data}.new`, JSON.stringify(state));
  renameSync(`${data}.new`, data);
};

const end = (code) => process.exit(code);
appendFileSync(calls, `${JSON.stringify({ argv, env: Object.keys(process.env), pid: process.pid })}\n`);

const planned = takeFault();
/** What `--allow-stale` is for. */
const fault = planned?.kind === 'stale' && argv.includes('--allow-stale') ? null : planned;
if (fault?.kind === 'hang') {
  if (fault.stubborn) process.on('SIGTERM', () => {});
  setInterval(() => {}, 1_000);
} else if (fault?.kind === 'lock') {
  err('Error: database is locked\n');
  end(1);
} else if (fault?.kind === 'stale') {
  err("Error: Database out of sync with JSONL. Run 'bd sync --import-only' to fix.\n");
  end(1);
} else if (fault?.kind === 'panic') {
  err(
    'panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation]\n\ngoroutine 1 [running]:\nmain.main()\n',
  );
  end(2);
} else if (fault?.kind === 'exit') {
  end(fault.code);
} else if (fault?.kind === 'says') {
  if (fault.stdout) out(fault.stdout);
  if (fault.stderr) err(fault.stderr);
  end(fault.code ?? 0);
} else {
  if (fault?.kind === 'slow') wait(fault.ms);
  const input = argv.includes('--body-file=-') || argv.includes('--description=-') ? readFileSync(0, 'utf8') : '';
  const answer =
    existsSync(folder) || argv[0] === 'version' || argv[0] === 'init'
      ? argv[0] === 'version'
        ? run({ argv, family, state: null, input, folder })
        : (mkdirSync(folder, { recursive: true }),
          locked(() => {
            const result = run({ argv, family, state: load(), input, folder });
            if (result.state) save(result.state);
            return result;
          }))
      : run({ argv, family, state: null, input, folder });
  if (fault?.kind === 'killed after the effect') process.kill(process.pid, 'SIGKILL');
  if (fault?.kind === 'silent after the effect') setInterval(() => {}, 1_000);
  else {
    if (fault?.kind === 'warning on stdout') out('warning: a newer bd is available\n');
    if (fault?.kind === 'huge') out(' '.repeat(fault.bytes));
    if (answer.stdout) out(answer.stdout);
    if (answer.stderr) err(answer.stderr);
    end(answer.code);
  }
}
