import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { renderTable } from '../output/render/table.ts';
import { timeText } from '../output/times.ts';
import { UsageError } from '../words/usage-error.ts';
import { secondsOf } from './spans.ts';

interface TokenArgs {
  readonly name: string | undefined;
  readonly rights: 'read' | 'run' | 'review' | 'admin' | undefined;
  readonly expires: string | undefined;
}

const untilText = (at: string | undefined): string =>
  at === undefined ? 'until it is revoked' : `until ${timeText(at)}`;

/** The token is printed once: only its digest is kept. */
export const createToken = async (
  { connection, io, json }: CommandContext,
  { name, rights, expires }: TokenArgs,
): Promise<number> => {
  if (name === undefined || rights === undefined)
    throw new UsageError('give --name and --rights: agent token create --name ana --rights run');
  const client = await connection.server();
  const made = await client.call('token.create', {
    name,
    rights,
    ...(expires === undefined ? {} : { expires_seconds: secondsOf('--expires', expires) }),
  });
  const { name: named, rights: given, token, expires_at } = made;
  if (json) {
    io.json({ name: named, rights: given, token, ...(expires_at && { expires_at }) });
    return exitCodes.done;
  }
  io.out(token);
  io.err(
    `${named} may use it with the right ${given}, ${untilText(expires_at)}; it is not shown again. In a shell: AGENT_TOKEN=<token> agent list`,
  );
  return exitCodes.done;
};

export const listTokens = async ({ connection, io, json }: CommandContext): Promise<number> => {
  const { tokens } = await (await connection.server()).call('token.list', {});
  if (json) for (const token of tokens) io.json(token);
  else if (tokens.length === 0)
    io.out('there are no tokens; make one: agent token create --name ana --rights run');
  else
    io.out(
      renderTable(
        ['NAME', 'RIGHTS', 'SINCE', 'UNTIL'],
        tokens.map(({ name, rights, created_at, expires_at }) =>
          [
            name,
            rights,
            timeText(created_at),
            expires_at === undefined ? '-' : timeText(expires_at),
          ].map((text) => ({ text })),
        ),
        io.width,
      ),
    );
  return exitCodes.done;
};

export const revokeToken = async (
  { connection, io, json }: CommandContext,
  name: string | undefined,
): Promise<number> => {
  if (name === undefined) throw new UsageError('give the name: agent token revoke ana');
  const revoked = await (await connection.server()).call('token.revoke', { name });
  if (json) io.json(revoked);
  else io.out(`the token ${name} no longer works`);
  return exitCodes.done;
};
