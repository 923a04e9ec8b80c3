// A bd for tests: one family of versions, with faults on demand. Called as: node fake-bd.mjs
// '{"family","calls","faults"}' <arguments of bd>
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { answer, recordCall, takesInput } from './answer.mjs';

const [setup, ...argv] = process.argv.slice(2);
const { family, calls, faults } = JSON.parse(setup);

const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const out = (text) => writeFileSync(1, text);
const err = (text) => writeFileSync(2, text);

/** The next fault that fits this call; each counts down in its file. */
const takeFault = () => {
  if (!existsSync(faults)) return null;
  const planned = JSON.parse(readFileSync(faults, 'utf8'));
  const found = planned.find(
    ({ on, times = 1 }) =>
      times > 0 && (on === undefined || argv.slice(0, 2).join(' ').startsWith(on)),
  );
  if (found === undefined) return null;
  found.times = (found.times ?? 1) - 1;
  writeFileSync(`${faults}.new`, JSON.stringify(planned));
  renameSync(`${faults}.new`, faults);
  return found;
};

const end = (code) => process.exit(code);
recordCall({ calls }, argv, Object.keys(process.env), process.pid);

const planned = takeFault();
/** The failure that `--allow-stale` avoids. */
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
  const input = takesInput(argv) ? readFileSync(0, 'utf8') : '';
  const { code, stdout, stderr } = answer({
    family,
    argv,
    cwd: process.cwd(),
    input,
    envelope: process.env.BD_JSON_ENVELOPE === '1',
  });
  if (fault?.kind === 'killed after the effect') process.kill(process.pid, 'SIGKILL');
  if (fault?.kind === 'silent after the effect') setInterval(() => {}, 1_000);
  else {
    if (fault?.kind === 'warning on stdout') out('warning: a newer bd is available\n');
    if (fault?.kind === 'huge') out(' '.repeat(fault.bytes));
    if (stdout) out(stdout);
    if (stderr) err(stderr);
    end(code);
  }
}
