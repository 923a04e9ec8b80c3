// The differences between families of bd versions, each from a real bd's answer or its source.
const eraA = {
  version: 'bd version 0.49.6 (dev)',
  database: 'beads.db',
  missingShow: 'stderr',
  missingUpdate: 'stderr',
  claimLost: 'Error claiming',
  failedWrites: 0,
  lostClaims: 'stderr',
  claimTwice: false,
  closedClaimable: true,
  duplicateEdge: 'fails',
  envelope: false,
  tree: false,
  commands: [],
  without: [],
};
const late = {
  ...eraA,
  database: 'embeddeddolt',
  missingShow: 'stdout',
  missingUpdate: 'text',
  failedWrites: 1,
  claimTwice: true,
  closedClaimable: false,
  duplicateEdge: 'succeeds',
};

export const families = {
  'A-direct': eraA,
  'A-daemon': {
    ...eraA,
    missingShow: 'resolving',
    missingUpdate: 'json',
    claimLost: 'Error updating',
  },
  '0.59.0': {
    ...late,
    version: 'bd version 0.59.0 (b1f3a2c)',
    tree: true,
    claimTwice: false,
    closedClaimable: true,
  },
  C: { ...late, version: 'bd version 1.0.4 (Homebrew)', envelope: true },
  D: {
    ...late,
    version: 'bd version 1.3.0-dc4 (dc4)',
    envelope: true,
    lostClaims: 'json',
    missingUpdate: 'last line',
  },
  wrapper: { ...eraA, commands: ['start'] },
  old: { ...eraA, version: 'bd version 0.41.0 (dev)', without: ['--claim'] },
};
