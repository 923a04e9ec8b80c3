import { writeFileSync } from 'node:fs';
import { arch, constants } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import type { Sandbox } from '../../../src/actors/sandbox/port.ts';
import { createNoSandbox, runSandboxed } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { type FilterOptions, seccompFilter } from '../../../src/actors/sandbox/seccomp.ts';
import { describeUnless, noSandbox, testUnless } from '../../support/needs.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const machines = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
type Machine = keyof typeof machines;
/** What programs of the kernel's compatibility modes present: int 0x80, and 32-bit ARM. */
const otherEntries = { x64: 0x40000003, arm64: 0x40000028 } as const;

interface Call {
  readonly number: number;
  readonly entry?: number;
  readonly args?: readonly number[];
}

const wordOf = ({ number, args = [] }: Call, entry: number, offset: number): number => {
  if (offset === 0) return number >>> 0;
  return offset === 4 ? entry : (args[(offset - 16) / 8] ?? 0) >>> 0;
};

/** What a filter answers, by the rules of the kernel: `allow`, `kill`, or the number of the error. */
const answerOf = (filter: Buffer, machine: Machine, call: Call): string | number => {
  let value = 0;
  for (let at = 0; ; at += 1) {
    const [code, operand] = [filter.readUInt16LE(at * 8), filter.readUInt32LE(at * 8 + 4)];
    const [whenTrue, whenFalse] = [filter[at * 8 + 2] ?? 0, filter[at * 8 + 3] ?? 0];
    const jump = (isTrue: boolean): number => (isTrue ? whenTrue : whenFalse);
    if (code === 0x20) value = wordOf(call, call.entry ?? machines[machine], operand);
    else if (code === 0x54) value = (value & operand) >>> 0;
    else if (code === 0x15) at += jump(value === operand);
    else if (code === 0x35) at += jump(value >= operand);
    else if (code === 0x45) at += jump((value & operand) !== 0);
    else if (code === 0x06) {
      if (operand === 0x7fff0000) return 'allow';
      return operand === 0x80000000 ? 'kill' : operand & 0xffff;
    } else throw new Error(`code ${code}`);
  }
};

const filterOf = (machine: Machine, options: Partial<FilterOptions> = {}): Buffer => {
  const filter = seccompFilter({ unixSockets: true, ...options }, machine);
  if (filter === null) throw new Error('no filter');
  return filter;
};

const [permission, unknownCall, unknownFamily] = [1, 38, 97];
const walked = 640;

/** Numbers with one answer, as ranges. */
const numbersWith = (filter: Buffer, machine: Machine, answer: string | number): string => {
  const found: string[] = [];
  for (let number = 0; number < walked; number += 1) {
    if (answerOf(filter, machine, { number }) !== answer) continue;
    let last = number;
    while (last + 1 < walked && answerOf(filter, machine, { number: last + 1 }) === answer)
      last += 1;
    found.push(last === number ? String(number) : `${number}-${last}`);
    number = last;
  }
  return found.join(' ');
};

const allowedEverywhere = '424 434 436-437 439 441 444-446 449 451-456 462-466';
const refusedEverywhere = '425-433 438 440 442-443 450 467';

test.each([
  [
    'x64',
    '101 103 134 136 139 153-155 163-169 172-173 175-176 179 212 227 237-239 246 248-250 256 272 279 298 300 304-305 308 310-313 320-321 323',
    '336',
  ],
  [
    'arm64',
    '18 39-41 58 60 89 97 104-106 112 116-117 142 170 217-219 224-225 235-239 241 262 265-266 268 270-273 280 282 294',
    '293',
  ],
] as const)(
  'on %s exactly these system calls are refused, and unknown ones do not exist',
  (machine, own, last) => {
    const filter = filterOf(machine);

    expect(numbersWith(filter, machine, permission)).toBe(`${own} ${refusedEverywhere}`);
    expect(numbersWith(filter, machine, 'allow')).toMatch(
      new RegExp(`\\b(\\d+-)?${last} ${allowedEverywhere}$`),
    );
    for (const number of [1_024, 0x3fffffff, 0x40000000, 0x40000027, 0x80000000, 0xffffffff])
      expect(answerOf(filter, machine, { number })).toBe(unknownCall);
    expect(answerOf(filter, machine, { number: 20, entry: otherEntries[machine] })).toBe('kill');
  },
);

test.each([
  ['x64', { socket: 41, socketpair: 53, clone: 56, ioctl: 16 }],
  ['arm64', { socket: 198, socketpair: 199, clone: 220, ioctl: 29 }],
] as const)('on %s the arguments of some calls decide', (machine, calls) => {
  const answers = (number: number, options: Partial<FilterOptions>, all: readonly number[][]) =>
    all.map((args) => answerOf(filterOf(machine, options), machine, { number, args }));
  const families = [[1], [2], [10], [16], [0], [15], [17], [29], [31], [38], [40], [44]];
  const others = families.slice(4).map(() => unknownFamily);
  const pairs = [
    [1, 1],
    [1, 0x80801],
    [1, 5],
    [1, 2],
    [1, 0x80802],
    [1, 3],
  ];

  expect(answers(calls.socket, {}, families)).toEqual([...Array(4).fill('allow'), ...others]);
  expect(answers(calls.socket, { unixSockets: false }, families)).toEqual([
    ...[permission, 'allow', 'allow', 'allow'],
    ...others,
  ]);
  expect(answers(calls.socketpair, {}, pairs)).toEqual(pairs.map(() => 'allow'));
  expect(answers(calls.socketpair, { unixSockets: false }, pairs)).toEqual([
    ...['allow', 'allow', 'allow'],
    ...[permission, permission, permission],
  ]);
  expect(answers(calls.clone, {}, [[0x11], [0x10000011], [0x20000]])).toEqual([
    ...['allow', permission, permission],
  ]);
  expect(answers(calls.clone, { makesOwnSandbox: true }, [[0x10000011]])).toEqual(['allow']);
  expect(
    answers(calls.ioctl, {}, [
      [0, 0x5401],
      [0, 0x5412],
      [0, 0x541c],
    ]),
  ).toEqual([...['allow', permission, permission]]);
});

test('a program that makes its own sandbox may mount, and nothing else more', () => {
  const filter = filterOf('x64', { makesOwnSandbox: true });
  const differs = Array.from({ length: walked }, (_, number) => number).filter(
    (number) =>
      answerOf(filter, 'x64', { number }) !== answerOf(filterOf('x64'), 'x64', { number }),
  );

  expect(differs).toEqual([155, 165, 166, 272, 428, 429, 442]);
  expect(differs.map((number) => answerOf(filter, 'x64', { number }))).toEqual(
    differs.map(() => 'allow'),
  );
});

const machine = arch();
const noFilter =
  machine === 'x64' || machine === 'arm64' ? null : `there is no filter for ${machine}`;

const run = async (root: string, script: string, sandbox: Sandbox) => {
  const result = await runSandboxed(sandbox, {
    argv: ['/bin/sh', '-c', script],
    root,
    readable: [],
    env: childEnvironment(process.env),
    network: false,
    timeoutMs: 120_000,
    signal: new AbortController().signal,
    headBytes: 100_000,
    tailBytes: 1_000,
  });
  if ('refusal' in result) throw new Error(result.refusal);
  return result;
};

/** Makes each call in a process of its own, with arguments that are no address and no handle. */
const walk = `
for my $number (@ARGV) {
  pipe(my $read, my $write);
  my $pid = fork;
  if (!$pid) {
    my $done = syscall($number, -1, -1, -1, -1, -1, -1);
    syswrite $write, $done == -1 ? $! + 0 : 'done';
    kill 9, $$;
  }
  close $write;
  sysread $read, my $said, 20;
  waitpid $pid, 0;
  print "$number $said\n";
}`;

/** An x64 program without a library: getpid by `int 0x80`, then exit with 0. */
const oldEntryProgram = (): Buffer => {
  const code = Buffer.from('b814000000cd80b83c00000031ff0f05', 'hex');
  const header = Buffer.alloc(120);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(62, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(0x400078n, 24);
  header.writeBigUInt64LE(64n, 32);
  header.writeUInt16LE(64, 52);
  header.writeUInt16LE(56, 54);
  header.writeUInt16LE(1, 56);
  header.writeUInt32LE(1, 64);
  header.writeUInt32LE(5, 68);
  header.writeBigUInt64LE(0x400000n, 80);
  header.writeBigUInt64LE(0x400000n, 88);
  header.writeBigUInt64LE(BigInt(120 + code.length), 96);
  header.writeBigUInt64LE(BigInt(120 + code.length), 104);
  header.writeBigUInt64LE(0x1000n, 112);
  return Buffer.concat([header, code]);
};

describeUnless(noSandbox ?? noFilter)('in the sandbox', () => {
  const sandbox = createBubblewrap({ readPaths: [], network: false });

  test('every system call that the filter does not allow is refused, up to numbers that no kernel has', async () => {
    const root = temporaryFolder();
    const known = machine === 'arm64' ? 'arm64' : 'x64';
    const filter = filterOf(known);
    const all = Array.from({ length: walked }, (_, number) => number);
    const expected = [...all, 0x40000000 + 39, 0x40000000 + 101].flatMap((number) => {
      const answer = answerOf(filter, known, { number });
      return answer === 'allow' ? [] : [[number, answer].join(' ')];
    });
    const numbers = expected.map((line) => line.split(' ')[0]);
    writeFileSync(join(root, 'walk.pl'), walk);

    const { output } = await run(root, `perl walk.pl ${numbers.join(' ')}`, sandbox);

    expect(output.trim().split('\n')).toEqual(expected);
    expect(expected.length).toBeGreaterThan(walked / 2);
  });

  testUnless(machine === 'x64' ? null : 'only processors of this kind have it')(
    'the entry of 32-bit programs ends the program',
    async () => {
      const root = temporaryFolder();
      writeFileSync(join(root, 'old'), oldEntryProgram(), { mode: 0o755 });
      const free = await run(root, './old', createNoSandbox());

      const { exitCode } = await run(root, './old', sandbox);

      // A kernel without this entry ends it by itself.
      expect([0, 128 + constants.signals.SIGSEGV]).toContain(free.exitCode);
      expect(exitCode).toBe(free.exitCode === 0 ? 128 + constants.signals.SIGSYS : free.exitCode);
    },
  );
});
