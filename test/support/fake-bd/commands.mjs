// The commands of a bd: what they print, where, and with which exit code, by family.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const usage = "Usage:\n  bd [flags]\n  bd [command]\n\nRun 'bd --help' for usage.\n";
const flags = {
  create: [
    'json',
    'title=',
    'body-file=',
    'description=',
    'type=',
    'priority=',
    'labels=',
    'actor=',
    'external-ref=',
    'deps=',
  ],
  show: ['json', 'allow-stale'],
  list: ['json', 'allow-stale', 'all', 'limit=', 'flat', 'status='],
  ready: ['json', 'allow-stale', 'limit='],
  blocked: ['json'],
  update: [
    'json',
    'claim',
    'status=',
    'assignee=',
    'actor=',
    'title=',
    'description=',
    'priority=',
  ],
  delete: ['json', 'force', 'actor='],
  close: ['json', 'reason=', 'actor=', 'force'],
  reopen: ['json', 'actor='],
  'dep add': ['json', 'actor='],
  'dep remove': ['json', 'actor='],
  'label add': ['json', 'actor='],
  'label remove': ['json', 'actor='],
  'comments add': ['json', 'actor='],
  init: ['prefix=', 'quiet', 'skip-hooks', 'skip-agents', 'non-interactive', 'from-jsonl'],
  start: ['json'],
  version: ['json'],
  import: ['i='],
  export: [],
};
const groups = ['dep', 'label', 'comments'];

const print = (value) => `${JSON.stringify(value, null, 2)}\n`;
const fail = (text, code = 1) => ({ code, stderr: `${text}\n` });

const parse = (argv, family) => {
  const name = groups.includes(argv[0]) ? `${argv[0]} ${argv[1]}` : argv[0];
  const known = flags[name];
  if (known === undefined || (name === 'start' && !family.commands.includes('start')))
    return {
      error: fail(
        `Error: unknown command "${argv[0]}" for "bd"\n\nDid you mean this?\n\tstale\n\tstate\n\tswarm\n\n${usage}`,
      ),
    };
  const options = {};
  const rest = [];
  const words = argv.slice(name.split(' ').length);
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at];
    if (word === '--') {
      rest.push(...words.slice(at + 1));
      break;
    }
    if (!word.startsWith('-')) {
      rest.push(word);
      continue;
    }
    const [, flag, value] = /^--?([a-z-]+)(?:=([\s\S]*))?$/.exec(word) ?? [
      null,
      word.slice(1),
      undefined,
    ];
    const takes = known.includes(`${flag}=`);
    if (
      (!takes && !known.includes(flag)) ||
      family.without.includes(`--${flag}`) ||
      (flag === 'flat' && !family.tree)
    )
      return { error: fail(`Error: unknown flag: --${flag}\n${usage}`) };
    if (takes && value === undefined) at += 1;
    options[flag] = takes ? (value ?? words[at]) : true;
  }
  return { name, options, rest };
};

/** Rises with every write, like a time in nanoseconds. */
const now = (state) => {
  state.tick = Math.max((state.tick ?? 0) + 1, Date.now());
  return new Date(state.tick).toISOString();
};

const isDone = (issue) => issue !== undefined && ['closed', 'pinned'].includes(issue.status);
const gates = ['blocks', 'conditional-blocks', 'waits-for'];

/** The output of `bd blocked`: blockers of the issue and of its parents. */
const blockersOf = (issue, issues) => {
  const own = issue.dependencies
    .filter(({ type }) => gates.includes(type))
    .map(({ depends_on_id }) => depends_on_id);
  const open = own.filter((id) => id.startsWith('external:') || !isDone(issues[id]));
  const parents = issue.dependencies
    .filter(({ type }) => type === 'parent-child')
    .map(({ depends_on_id }) => issues[depends_on_id]);
  return [
    ...new Set([
      ...open,
      ...parents.flatMap((parent) =>
        parent === undefined || isDone(parent) ? [] : blockersOf(parent, issues),
      ),
    ]),
  ];
};

const bare = ({ dependencies: _, labels, ...issue }) => ({
  ...issue,
  ...(labels.length > 0 ? { labels } : {}),
});
const listed = (issue) => ({
  ...bare(issue),
  ...(issue.dependencies.length > 0 ? { dependencies: issue.dependencies } : {}),
  dependency_count: issue.dependencies.length,
  dependent_count: 0,
  comment_count: 0,
});
const shown = (issue, issues) => {
  const dependencies = issue.dependencies.flatMap(({ depends_on_id, type }) => {
    const target = issues[depends_on_id];
    return target === undefined ? [] : [{ ...bare(target), dependency_type: type }];
  });
  return { ...bare(issue), ...(dependencies.length > 0 ? { dependencies } : {}) };
};

const newId = (issues) => {
  for (;;) {
    const id = `bd-${Math.random().toString(36).slice(2, 5)}`;
    if (/^bd-[a-z0-9]{3}$/.test(id) && issues[id] === undefined) return id;
  }
};

const reaches = (from, to, issues, seen = new Set()) => {
  if (from === to) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return (issues[from]?.dependencies ?? []).some(
    ({ depends_on_id, type }) => gates.includes(type) && reaches(depends_on_id, to, issues, seen),
  );
};

const commands = {
  version: ({ family }) => ({ code: 0, stdout: `${family.version}\n` }),

  init: ({ state, family, folder }) => {
    if (state !== null)
      return fail(
        `\n⚠ Found existing database: ${join(folder, family.database)}\n\nThis workspace is already initialized.\n\nAborting.`,
      );
    const issues = {};
    const lines = existsSync(join(folder, 'issues.jsonl'))
      ? readFileSync(join(folder, 'issues.jsonl'), 'utf8')
      : '';
    for (const line of lines.split('\n').filter((text) => text.trim() !== '')) {
      const issue = JSON.parse(line);
      if (issue.id !== undefined && issue.status !== 'tombstone')
        issues[issue.id] = { labels: [], dependencies: [], ...issue };
    }
    writeFileSync(join(folder, 'metadata.json'), '{"database":"beads.db"}\n');
    writeFileSync(join(folder, 'config.yaml'), '# bd\n');
    writeFileSync(join(folder, '..', 'AGENTS.md'), 'You must git push.\n');
    return { code: 0, state: { issues } };
  },

  create: ({ state, options, input }) => {
    const title = options.title ?? '';
    if (title === '') return fail('Error: validation failed: title is required');
    if (Buffer.byteLength(title) > 500)
      return fail('Error: validation failed: title must be 500 characters or less');
    const description =
      options['body-file'] === '-' || options.description === '-'
        ? input
        : (options.description ?? '');
    const at = now(state);
    const issue = {
      id: newId(state.issues),
      title,
      ...(description === '' ? {} : { description }),
      status: 'open',
      priority: Number(options.priority ?? 2),
      issue_type: options.type ?? 'task',
      created_at: at,
      created_by: options.actor ?? 'tester',
      updated_at: at,
      ...(options['external-ref'] === undefined ? {} : { external_ref: options['external-ref'] }),
      labels: [...new Set((options.labels ?? '').split(',').filter((label) => label !== ''))],
      dependencies: [],
    };
    state.issues[issue.id] = issue;
    const { labels: _labels, dependencies: _dependencies, ...printed } = issue;
    return {
      code: 0,
      stdout: print(printed),
      stderr: "warning: beads.role not configured. Run 'bd init' to set.\n",
      state,
    };
  },

  show: ({ state, rest, family }) => {
    const found = rest.flatMap((id) =>
      state.issues[id] === undefined ? [] : [shown(state.issues[id], state.issues)],
    );
    const missing = rest.filter((id) => state.issues[id] === undefined);
    if (found.length > 0)
      return {
        code: 0,
        stdout: print(found),
        stderr: missing
          .map((id) => `Error fetching ${id}: no issue found matching "${id}"\n`)
          .join(''),
      };
    const [id] = missing;
    if (family.missingShow === 'stderr')
      return { code: 0, stderr: `Error fetching ${id}: no issue found matching "${id}"\n` };
    const error =
      family.missingShow === 'resolving'
        ? `resolving ID ${id}: operation failed: failed to resolve ID: no issue found matching "${id}"`
        : 'no issues found matching the provided IDs';
    return {
      code: 1,
      stdout: print({ error }),
      ...(family.missingShow === 'stdout' ? { stderr: `no issue found matching "${id}"\n` } : {}),
    };
  },

  list: ({ state, options, family }) => {
    const every = Object.values(state.issues).filter(
      ({ status }) => options.all || status !== 'closed',
    );
    const issues = options.limit === '0' ? every : every.slice(0, 50);
    if (family.tree && !options.flat)
      return {
        code: 0,
        stdout: `${issues.map(({ id, title }) => `○ ${id} ${title}`).join('\n')}\n`,
      };
    return { code: 0, stdout: print(issues.map(listed)) };
  },

  ready: ({ state, options }) => {
    const ready = Object.values(state.issues).filter(
      (issue) =>
        issue.status === 'open' &&
        issue.issue_type !== 'gate' &&
        blockersOf(issue, state.issues).length === 0,
    );
    return {
      code: 0,
      stdout: print((options.limit === '0' ? ready : ready.slice(0, 10)).map(bare)),
    };
  },

  blocked: ({ state }) => {
    const blocked = Object.values(state.issues)
      .map((issue) => ({
        ...bare(issue),
        blocked_by: isDone(issue) ? [] : blockersOf(issue, state.issues),
      }))
      .filter(({ blocked_by }) => blocked_by.length > 0);
    return {
      code: 0,
      stdout: print(
        blocked.map((issue) => ({ ...issue, blocked_by_count: issue.blocked_by.length })),
      ),
    };
  },

  update: ({ state, options, rest: [id], family }) => {
    const issue = state.issues[id];
    if (issue === undefined) {
      const error = `no issue found matching "${id}"`;
      if (family.missingUpdate === 'json')
        return { code: 1, stdout: print({ error: `resolving ID ${id}: ${error}` }) };
      if (family.missingUpdate === 'last line')
        return fail(`Error resolving ${id}\n${JSON.stringify({ error })}`);
      return fail(`Error resolving ${id}: ${error}`, family.failedWrites);
    }
    if (options.claim) {
      const holder = issue.assignee;
      const lost =
        holder !== undefined && holder !== '' && !(family.claimTwice && holder === options.actor)
          ? `issue already claimed by ${holder}`
          : !family.closedClaimable && !['open', 'in_progress'].includes(issue.status)
            ? `issue not claimable: status ${issue.status}`
            : null;
      if (lost !== null && family.lostClaims === 'json')
        return fail(JSON.stringify({ error: `claiming ${id}: ${lost}`, schema_version: 1 }));
      if (lost !== null) return fail(`${family.claimLost} ${id}: ${lost}`, family.failedWrites);
      Object.assign(issue, { status: 'in_progress', assignee: options.actor });
    }
    if (
      options.status !== undefined &&
      !['open', 'in_progress', 'blocked', 'closed', 'deferred', 'pinned'].includes(options.status)
    )
      return fail(
        `Error updating ${id}: validate field update: invalid status: ${options.status}`,
        family.failedWrites,
      );
    if (options.status !== undefined) issue.status = options.status;
    if (options.title !== undefined) issue.title = options.title;
    if (options.description !== undefined) issue.description = options.description;
    if (options.priority !== undefined) issue.priority = Number(options.priority);
    if (options.assignee !== undefined) issue.assignee = options.assignee;
    if (issue.assignee === '') delete issue.assignee;
    issue.updated_at = now(state);
    return { code: 0, stdout: print([bare(issue)]), state };
  },

  delete: ({ state, rest: [id] }) => {
    if (state.issues[id] === undefined) return fail(`Error: issue not found: ${id}`);
    delete state.issues[id];
    return { code: 0, stdout: print({ deleted: id }), state };
  },

  close: ({ state, options, rest: [id], family }) => {
    const issue = state.issues[id];
    if (issue === undefined)
      return {
        code: 1,
        stdout: print({ error: `resolving ID ${id}: no issue found matching "${id}"` }),
      };
    const blockers = blockersOf(issue, state.issues);
    if (blockers.length > 0 && !options.force)
      return fail(
        `cannot close ${id}: blocked by open issues [${blockers.join(' ')}] (use --force to override)`,
        family.failedWrites,
      );
    const at = now(state);
    Object.assign(issue, {
      status: 'closed',
      closed_at: at,
      close_reason: options.reason ?? '',
      updated_at: at,
    });
    return { code: 0, stdout: print([bare(issue)]), state };
  },

  reopen: ({ state, rest: [id], family }) => {
    const issue = state.issues[id];
    if (issue === undefined)
      return fail(`Error reopening ${id}: no issue found matching "${id}"`, family.failedWrites);
    issue.status = 'open';
    delete issue.closed_at;
    delete issue.close_reason;
    issue.updated_at = now(state);
    return { code: 0, stdout: print([bare(issue)]), state };
  },

  'dep add': ({ state, rest: [id, on], family }) => {
    const error = (text) => ({ code: 1, stdout: print({ error: text }) });
    if (state.issues[id] === undefined)
      return error(`resolving issue ID ${id}: no issue found matching "${id}"`);
    if (state.issues[on] === undefined)
      return error(`resolving dependency ID ${on}: no issue found matching "${on}"`);
    if (id === on) return error('issue cannot depend on itself');
    const { dependencies } = state.issues[id];
    const added = { depends_on_id: on, issue_id: id, status: 'added', type: 'blocks' };
    if (dependencies.some(({ depends_on_id, type }) => depends_on_id === on && type === 'blocks'))
      return family.duplicateEdge === 'succeeds'
        ? { code: 0, stdout: print(added) }
        : error(
            'failed to add dependency: sqlite3: constraint failed: UNIQUE constraint failed: dependencies.issue_id, dependencies.depends_on_id, dependencies.type',
          );
    if (reaches(on, id, state.issues))
      return error(`cannot add dependency: would create a cycle (${id} → ${on} → ... → ${id})`);
    const at = now(state);
    dependencies.push({
      issue_id: id,
      depends_on_id: on,
      type: 'blocks',
      created_at: at,
      created_by: 'tester',
    });
    state.issues[id].updated_at = at;
    return { code: 0, stdout: print(added), state };
  },

  'dep remove': ({ state, rest: [id, on] }) => {
    const issue = state.issues[id];
    const kept = issue?.dependencies.filter(({ depends_on_id }) => depends_on_id !== on);
    if (issue === undefined || kept.length === issue.dependencies.length)
      return { code: 1, stdout: print({ error: `dependency from ${id} to ${on} does not exist` }) };
    issue.dependencies = kept;
    issue.updated_at = now(state);
    return {
      code: 0,
      stdout: print({ depends_on_id: on, issue_id: id, status: 'removed' }),
      state,
    };
  },

  'label add': ({ state, rest: [id, label] }) => {
    const issue = state.issues[id];
    if (issue === undefined) return fail(`Error: no issue found matching "${id}"`);
    issue.labels = [...new Set([...issue.labels, label])];
    issue.updated_at = now(state);
    return { code: 0, stdout: print([{ issue_id: id, label, status: 'added' }]), state };
  },

  'label remove': ({ state, rest: [id, label] }) => {
    const issue = state.issues[id];
    if (issue === undefined) return fail(`Error: no issue found matching "${id}"`);
    issue.labels = issue.labels.filter((each) => each !== label);
    issue.updated_at = now(state);
    return { code: 0, stdout: print([{ issue_id: id, label, status: 'removed' }]), state };
  },

  'comments add': ({ state, rest: [id, text] }) => {
    if (state.issues[id] === undefined)
      return { code: 1, stdout: print({ error: `no issue found matching "${id}"` }) };
    const comments = [
      ...(state.comments ?? []),
      {
        id: (state.comments ?? []).length + 1,
        issue_id: id,
        author: 'tester',
        text,
        created_at: now(state),
      },
    ];
    return { code: 0, stdout: print(comments.at(-1)), state: { ...state, comments } };
  },

  start: ({ state, rest: [id] }) => {
    const issue = state.issues[id];
    if (issue === undefined) return fail(`no such task: ${id}`);
    Object.assign(issue, { status: 'in_progress', assignee: 'wrapper', updated_at: now(state) });
    return { code: 0, stdout: `started ${id}\n`, state };
  },

  export: ({ state }) => ({
    code: 0,
    stdout: Object.values(state.issues)
      .map((issue) => `${JSON.stringify(issue)}\n`)
      .join(''),
  }),
};

/**
 * JSON as this family wraps it: arrays and errors too, when the environment asks for the envelope.
 */
const wrap = (stdout, family, envelope) => {
  if (!family.envelope || stdout === undefined || !envelope || !/^[[{]/.test(stdout)) return stdout;
  const value = JSON.parse(stdout);
  return value.error === undefined
    ? print({ schema_version: 1, data: value })
    : print({ ...value, schema_version: 1 });
};

export const run = ({ argv, family, state, input, folder, envelope }) => {
  const { error, name, options, rest } = parse(argv, family);
  if (error !== undefined) return error;
  if (state === null && !['version', 'init'].includes(name))
    return fail(
      "Error: no beads database found\nHint: run 'bd init' to create a database in the current directory",
    );
  const result = commands[name]({ state, options, rest, family, input, folder });
  return name === 'export' ? result : { ...result, stdout: wrap(result.stdout, family, envelope) };
};
