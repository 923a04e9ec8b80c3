import { runCommandLine } from './command-line.ts';
import type { Invocation } from './invocation.ts';
import type { Io } from './output/io.ts';

export const runAgent = async (invocation: Invocation, io: Io): Promise<number> => {
  const [first, ...words] = invocation.words;
  if (first !== 'open-url') return runCommandLine(invocation, io);
  const { openUrl } = await import('./setup/open-url.ts');
  return openUrl(words, io, invocation.env);
};
