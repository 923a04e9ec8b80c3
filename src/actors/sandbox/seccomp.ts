import { arch } from 'node:process';

interface Calls {
  /** AUDIT_ARCH_*: the same numbers mean other calls elsewhere. */
  readonly machine: number;
  readonly socket: number;
  readonly socketpair: number;
  readonly clone: number;
  readonly ioctl: number;
  /** The last number of the machine's own table; later ones are the same on every machine. */
  readonly lastOwn: number;
  /** No build, test or git needs these, and each has been, or may be, a way out of a sandbox. */
  readonly refused: Readonly<Record<string, number>>;
}

/** The newest known number is 469. What is in neither of these two lists is unknown to programs. */
const refusedEverywhere = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  process_madvise: 440,
  mount_setattr: 442,
  quotactl_fd: 443,
  set_mempolicy_home_node: 450,
  open_tree_attr: 467,
};

const allowedEverywhere = {
  pidfd_send_signal: 424,
  pidfd_open: 434,
  close_range: 436,
  openat2: 437,
  faccessat2: 439,
  epoll_pwait2: 441,
  landlock_create_ruleset: 444,
  landlock_add_rule: 445,
  landlock_restrict_self: 446,
  futex_waitv: 449,
  cachestat: 451,
  fchmodat2: 452,
  map_shadow_stack: 453,
  futex_wake: 454,
  futex_wait: 455,
  futex_requeue: 456,
  mseal: 462,
  setxattrat: 463,
  getxattrat: 464,
  listxattrat: 465,
  removexattrat: 466,
};

const callsByMachine: Readonly<Record<string, Calls>> = {
  x64: {
    machine: 0xc000003e,
    socket: 41,
    socketpair: 53,
    clone: 56,
    ioctl: 16,
    lastOwn: 336,
    refused: {
      ...refusedEverywhere,
      ptrace: 101,
      syslog: 103,
      uselib: 134,
      ustat: 136,
      sysfs: 139,
      vhangup: 153,
      modify_ldt: 154,
      pivot_root: 155,
      acct: 163,
      settimeofday: 164,
      mount: 165,
      umount2: 166,
      swapon: 167,
      swapoff: 168,
      reboot: 169,
      iopl: 172,
      ioperm: 173,
      init_module: 175,
      delete_module: 176,
      quotactl: 179,
      lookup_dcookie: 212,
      clock_settime: 227,
      mbind: 237,
      set_mempolicy: 238,
      get_mempolicy: 239,
      kexec_load: 246,
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      migrate_pages: 256,
      unshare: 272,
      move_pages: 279,
      perf_event_open: 298,
      fanotify_init: 300,
      open_by_handle_at: 304,
      clock_adjtime: 305,
      setns: 308,
      process_vm_readv: 310,
      process_vm_writev: 311,
      kcmp: 312,
      finit_module: 313,
      kexec_file_load: 320,
      bpf: 321,
      userfaultfd: 323,
    },
  },
  arm64: {
    machine: 0xc00000b7,
    socket: 198,
    socketpair: 199,
    clone: 220,
    ioctl: 29,
    lastOwn: 294,
    refused: {
      ...refusedEverywhere,
      lookup_dcookie: 18,
      umount2: 39,
      mount: 40,
      pivot_root: 41,
      vhangup: 58,
      quotactl: 60,
      acct: 89,
      unshare: 97,
      kexec_load: 104,
      init_module: 105,
      delete_module: 106,
      clock_settime: 112,
      syslog: 116,
      ptrace: 117,
      reboot: 142,
      settimeofday: 170,
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      swapon: 224,
      swapoff: 225,
      mbind: 235,
      get_mempolicy: 236,
      set_mempolicy: 237,
      migrate_pages: 238,
      move_pages: 239,
      perf_event_open: 241,
      fanotify_init: 262,
      open_by_handle_at: 265,
      clock_adjtime: 266,
      setns: 268,
      process_vm_readv: 270,
      process_vm_writev: 271,
      kcmp: 272,
      finit_module: 273,
      bpf: 280,
      userfaultfd: 282,
      kexec_file_load: 294,
    },
  },
};

const newNamespaces = 0x7e020000 | 0x02000000;
/** These ioctl calls put letters into somebody else's terminal. */
const terminalTricks = [0x5412, 0x541c];
const unixFamily = 1;
/** IPv4, IPv6, and netlink, by which programs list network interfaces. */
const otherFamilies = [2, 10, 16];
const [streamType, packetType] = [1, 5];

const offsets = { number: 0, machine: 4, argument: (n: number): number => 16 + 8 * n };
const opcodes = { load: 0x20, and: 0x54, equal: 0x15, atLeast: 0x35, anyBit: 0x45, answer: 0x06 };
const returnValues = {
  allow: 0x7fff0000,
  kill: 0x80000000,
  /** EPERM */
  refuse: 0x00050001,
  /** ENOSYS: programs then do without the call, such as clone instead of clone3. */
  unknown: 0x00050026,
  /** EAFNOSUPPORT */
  noFamily: 0x00050061,
};

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, operand: number];

const loadWord = (offset: number): Instruction => [opcodes.load, 0, 0, offset];
const returnValue = (value: number): Instruction => [opcodes.answer, 0, 0, value];
/** Runs the next instruction only when the value is equal. */
const whenEqual = (value: number, then: number): readonly Instruction[] => [
  [opcodes.equal, 0, 1, value],
  returnValue(then),
];
const allowThese = (values: readonly number[]): readonly Instruction[] =>
  values.flatMap((value) => whenEqual(value, returnValues.allow));

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
  callsByMachine[machine]?.refused[call] ?? -1;

/** A program that makes its own sandbox needs these. */
const nestingCalls: ReadonlySet<string> = new Set([
  'unshare',
  'mount',
  'umount2',
  'pivot_root',
  'open_tree',
  'move_mount',
  'mount_setattr',
]);

export interface FilterOptions {
  /** False where a socket of somebody else is in reach. */
  readonly unixSockets: boolean;
  readonly makesOwnSandbox?: boolean;
}

/**
 * A pair of datagram sockets can send to any address, so it counts as a socket. Pairs of the other
 * types are connected for good.
 */
const pairChecks = ({ socketpair }: Calls): readonly Instruction[] =>
  checkArgument(socketpair, 1, [
    [opcodes.and, 0, 0, 0xf],
    ...allowThese([streamType, packetType]),
    returnValue(returnValues.refuse),
  ]);

const programFor = (
  calls: Calls,
  { unixSockets, makesOwnSandbox = false }: FilterOptions,
): readonly Instruction[] => {
  const isNesting = ([name]: readonly [string, number]): boolean =>
    makesOwnSandbox && nestingCalls.has(name);
  const listed = Object.entries(calls.refused);
  return [
    loadWord(offsets.machine),
    [opcodes.equal, 1, 0, calls.machine],
    returnValue(returnValues.kill),
    loadWord(offsets.number),
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
    ...checkArgument(calls.socket, 0, [
      ...allowThese(otherFamilies),
      ...whenEqual(unixFamily, unixSockets ? returnValues.allow : returnValues.refuse),
      returnValue(returnValues.noFamily),
    ]),
    ...(unixSockets ? [] : pairChecks(calls)),
    ...listed
      .filter((call) => !isNesting(call))
      .flatMap(([, number]) => whenEqual(number, returnValues.refuse)),
    [opcodes.atLeast, 1, 0, calls.lastOwn + 1],
    returnValue(returnValues.allow),
    ...allowThese([
      ...Object.values(allowedEverywhere),
      ...listed.filter(isNesting).map(([, number]) => number),
    ]),
    // Calls that are newer than this list, and those of x32, whose numbers have a bit of their own.
    returnValue(returnValues.unknown),
  ];
};

/**
 * The system-call filter for commands as bwrap takes it (an array of `struct sock_filter`); null on
 * a machine with unknown numbers.
 */
export const seccompFilter = (options: FilterOptions, machine: string = arch): Buffer | null => {
  const calls = callsByMachine[machine];
  if (calls === undefined) return null;
  const program = programFor(calls, options);
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, whenTrue, whenFalse, operand]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(whenTrue, index * 8 + 2);
    bytes.writeUInt8(whenFalse, index * 8 + 3);
    bytes.writeUInt32LE(operand >>> 0, index * 8 + 4);
  }
  return bytes;
};
