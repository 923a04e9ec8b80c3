import { hostname } from 'node:os';
import { hashOfLine } from '../../actors/store/rows/audit-rows.ts';
import { plural } from '../../machines/plural.ts';
import type { Client, Result } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { timeText } from '../output/times.ts';
import { UsageError } from '../words/usage-error.ts';
import { timeOf } from './spans.ts';

type Page = Result<'audit'>;
type Line = Page['lines'][number];

interface AuditArgs {
  readonly since: string | undefined;
  readonly task: string | undefined;
  readonly format: 'text' | 'syslog';
  readonly verify: boolean;
}

const linesAtOnce = 1_000;

/** One page after the other: a log may be larger than the memory. */
async function* pagesOf(
  client: Client,
  filter: { readonly since?: string; readonly task_id?: string },
): AsyncGenerator<Page> {
  let after = 0;
  for (;;) {
    const page = await client.call('audit', { ...filter, after_seq: after, limit: linesAtOnce });
    yield page;
    if (page.next_after === undefined) return;
    after = page.next_after;
  }
}

const aboutOf = ({ task_id, about }: Line): string => task_id ?? about ?? '-';

const textLine = (line: Line): string =>
  [
    timeText(line.at),
    line.name,
    line.via,
    line.address,
    line.action,
    aboutOf(line),
    line.outcome,
  ].join('  ');

/** Facility 13 is that of audit logs, and 32473 the number that RFC 5612 keeps for examples. */
const syslogLine = (line: Line): string => {
  const { seq, at, name, via, address, action, task_id, about, outcome, hash } = line;
  const quoted = (text: string): string => `"${text.replace(/["\\\]]/g, '\\$&')}"`;
  const facts = { seq: String(seq), name, via, address, task_id, about, outcome, hash };
  const data = Object.entries(facts)
    .flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${quoted(value)}`]))
    .join(' ');
  const priority = 13 * 8 + (outcome === 'forbidden' ? 4 : 5);
  const kind = action.replace(/[^\x21-\x7e]/g, '_').slice(0, 32);
  return `<${priority}>1 ${at} ${hostname()} agent-task-server - ${kind} [audit@32473 ${data}] ${name} ${action} ${aboutOf(line)}: ${outcome}`;
};

const hashOf = ({ task_id, about, at, ...line }: Line): string =>
  hashOfLine({ ...line, at: Date.parse(at), taskId: task_id ?? null, about: about ?? null });

interface Checked {
  readonly lines: number;
  readonly hash: string;
  /** The first line that is not as it was written. */
  readonly broken?: { readonly seq: number; readonly problem: string };
}

/** Computes the chain again, from its first line to the end that is kept apart from it. */
const checkChain = async (client: Client): Promise<Checked> => {
  let [seq, hash] = [0, ''];
  let end: Page['end'];
  const broken = (at: number, problem: string): Checked => ({
    lines: seq,
    hash,
    broken: { seq: at, problem },
  });
  for await (const page of pagesOf(client, {})) {
    end ??= page.end;
    for (const line of page.lines) {
      if (line.seq !== seq + 1) return broken(seq + 1, 'is missing');
      if (line.previous !== hash) return broken(line.seq, 'does not follow the line before');
      if (hashOf(line) !== line.hash) return broken(line.seq, 'was changed');
      ({ seq, hash } = line);
      if (end?.seq === seq && end.hash !== hash) return broken(seq, 'is not what was written');
    }
  }
  if (end === undefined && seq > 0) return broken(seq, 'has no record of the end');
  return (end?.seq ?? 0) > seq ? broken(seq + 1, 'is missing') : { lines: seq, hash };
};

/** Exits 1 at a line that was changed, added or removed. */
const verify = async (client: Client, { io, json }: CommandContext): Promise<number> => {
  const checked = await checkChain(client);
  const { broken, lines, hash } = checked;
  if (json) io.json(checked);
  else if (broken !== undefined) io.out(`line ${broken.seq} of the audit log ${broken.problem}`);
  else if (lines === 0) io.out('the audit log is empty');
  else io.out(`${plural(lines, 'line')}, each as it was written; the last has the hash ${hash}`);
  return broken === undefined ? exitCodes.done : exitCodes.failed;
};

/** Prints who changed what, oldest first. */
export const showAudit = async (context: CommandContext, args: AuditArgs): Promise<number> => {
  const { connection, io, json } = context;
  const { since, task, format } = args;
  if (args.verify && (since ?? task) !== undefined)
    throw new UsageError('--verify checks all lines; leave out --since and --task');
  const filter = {
    ...(since === undefined ? {} : { since: timeOf('--since', since, Date.now()) }),
    ...(task === undefined ? {} : { task_id: task }),
  };
  const client = await connection.server();
  if (args.verify) return verify(client, context);
  for await (const { lines } of pagesOf(client, filter)) {
    for (const line of lines)
      if (json) io.json(line);
      else io.out(format === 'syslog' ? syslogLine(line) : textLine(line));
    await io.room();
  }
  return exitCodes.done;
};
