import { takeFastPath } from './fast-path.ts';
import type { Invocation } from './invocation.ts';
import type { Io } from './output/io.ts';

export const runAgent = async (invocation: Invocation, io: Io): Promise<number> => {
  const [first, ...words] = invocation.words;
  if (first === 'open-url') {
    const { openUrl } = await import('./setup/open-url.ts');
    return openUrl(words, io, invocation.env);
  }
  const code = await takeFastPath(invocation, io);
  if (code !== null) return code;
  const { runCommandLine } = await import('./command-line.ts');
  return runCommandLine(invocation, io);
};
