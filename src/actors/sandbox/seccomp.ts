import { arch } from 'node:process';

interface Calls {
  /** AUDIT_ARCH_*: the same numbers mean other calls elsewhere. */
  readonly machine: number;
  readonly socket: number;
  readonly clone: number;
  readonly ioctl: number;
  /** No build, test or git needs these, and each has been a way out of a sandbox. */
  readonly denied: Readonly<Record<string, number>>;
}

const sharedNumbers = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  mount_setattr: 442,
};

const callsByMachine: Readonly<Record<string, Calls>> = {
  x64: {
    machine: 0xc000003e,
    socket: 41,
    clone: 56,
    ioctl: 16,
    denied: {
      ...sharedNumbers,
      ...{
        ptrace: 101,
        syslog: 103,
        pivot_root: 155,
        acct: 163,
        settimeofday: 164,
        mount: 165,
        umount2: 166,
      },
      ...{
        swapon: 167,
        swapoff: 168,
        reboot: 169,
        iopl: 172,
        ioperm: 173,
        init_module: 175,
        delete_module: 176,
      },
      ...{
        quotactl: 179,
        clock_settime: 227,
        kexec_load: 246,
        add_key: 248,
        request_key: 249,
        keyctl: 250,
      },
      ...{
        unshare: 272,
        perf_event_open: 298,
        open_by_handle_at: 304,
        setns: 308,
        process_vm_readv: 310,
      },
      ...{
        process_vm_writev: 311,
        finit_module: 313,
        kexec_file_load: 320,
        bpf: 321,
        userfaultfd: 323,
      },
    },
  },
  arm64: {
    machine: 0xc00000b7,
    socket: 198,
    clone: 220,
    ioctl: 29,
    denied: {
      ...sharedNumbers,
      ...{
        umount2: 39,
        mount: 40,
        pivot_root: 41,
        quotactl: 60,
        acct: 89,
        unshare: 97,
        kexec_load: 104,
      },
      ...{
        init_module: 105,
        delete_module: 106,
        clock_settime: 112,
        syslog: 116,
        ptrace: 117,
        reboot: 142,
      },
      ...{
        settimeofday: 170,
        add_key: 217,
        request_key: 218,
        keyctl: 219,
        swapon: 224,
        swapoff: 225,
      },
      ...{ perf_event_open: 241, open_by_handle_at: 265, setns: 268, process_vm_readv: 270 },
      ...{
        process_vm_writev: 271,
        finit_module: 273,
        bpf: 280,
        userfaultfd: 282,
        kexec_file_load: 294,
      },
    },
  },
};

/** Refused everywhere: libc falls back to clone, whose flags the filter can read. */
const clone3 = 435;
const newNamespaces = 0x7e020000 | 0x02000000;
/** These ioctl calls put letters into somebody else's terminal. */
const terminalTricks = [0x5412, 0x541c];
const unixSockets = 1;
const [packetSockets, vmSockets] = [17, 40];

const offsets = { number: 0, machine: 4, argument: (n: number): number => 16 + 8 * n };
const opcodes = { load: 0x20, equal: 0x15, atLeast: 0x35, anyBit: 0x45, answer: 0x06 };
const returnValues = {
  allow: 0x7fff0000,
  kill: 0x80000000,
  refuse: 0x00050001,
  unknown: 0x00050026,
};

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, operand: number];

const loadWord = (offset: number): Instruction => [opcodes.load, 0, 0, offset];
const returnValue = (value: number): Instruction => [opcodes.answer, 0, 0, value];
/** Runs the next instruction only when the value is equal. */
const whenEqual = (value: number, then: number): readonly Instruction[] => [
  [opcodes.equal, 0, 1, value],
  returnValue(then),
];

/** Tests one argument of one call, then loads the call's number again. */
const checkArgument = (
  call: number,
  n: number,
  tests: readonly Instruction[],
): readonly Instruction[] => [
  [opcodes.equal, 0, tests.length + 2, call],
  loadWord(offsets.argument(n)),
  ...tests,
  loadWord(offsets.number),
];

/** The number of a refused call on this machine, for a probe; -1 when unknown. */
export const refusedCallNumber = (call: string, machine: string = arch): number =>
  callsByMachine[machine]?.denied[call] ?? -1;

/** A program that makes its own sandbox needs these. */
const nestingCalls: ReadonlySet<string> = new Set([
  ...['unshare', 'mount', 'umount2', 'pivot_root', 'open_tree', 'move_mount', 'mount_setattr'],
]);

interface FilterOptions {
  readonly network: boolean;
  readonly makesOwnSandbox: boolean;
}

const programFor = (
  calls: Calls,
  { network, makesOwnSandbox }: FilterOptions,
): readonly Instruction[] => {
  const denied = Object.entries(calls.denied).filter(
    ([name]) => !makesOwnSandbox || !nestingCalls.has(name),
  );
  const families = [packetSockets, vmSockets, ...(network ? [unixSockets] : [])];
  return [
    loadWord(offsets.machine),
    [opcodes.equal, 1, 0, calls.machine],
    returnValue(returnValues.kill),
    loadWord(offsets.number),
    // The x32 calls of an x64 machine have their own numbers.
    [opcodes.atLeast, 0, 1, 0x40000000],
    returnValue(returnValues.refuse),
    ...whenEqual(clone3, returnValues.unknown),
    ...denied.flatMap(([, call]) => whenEqual(call, returnValues.refuse)),
    ...(makesOwnSandbox
      ? []
      : checkArgument(calls.clone, 0, [
          [opcodes.anyBit, 0, 1, newNamespaces],
          returnValue(returnValues.refuse),
        ])),
    ...checkArgument(
      calls.ioctl,
      1,
      terminalTricks.flatMap((request) => whenEqual(request, returnValues.refuse)),
    ),
    ...checkArgument(
      calls.socket,
      0,
      families.flatMap((family) => whenEqual(family, returnValues.refuse)),
    ),
    returnValue(returnValues.allow),
  ];
};

/**
 * The system-call filter for commands as bwrap takes it (an array of `struct sock_filter`); null on
 * a machine with unknown numbers. Unix sockets are refused only where the network is shared:
 * without it, those of others are in another namespace, and programs that talk to their own
 * children over them work.
 */
export const seccompFilter = ({
  network,
  makesOwnSandbox = false,
  machine = arch,
}: Partial<FilterOptions> &
  Pick<FilterOptions, 'network'> & { machine?: string }): Buffer | null => {
  const calls = callsByMachine[machine];
  if (calls === undefined) return null;
  const program = programFor(calls, { network, makesOwnSandbox });
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, whenTrue, whenFalse, operand]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(whenTrue, index * 8 + 2);
    bytes.writeUInt8(whenFalse, index * 8 + 3);
    bytes.writeUInt32LE(operand >>> 0, index * 8 + 4);
  }
  return bytes;
};
