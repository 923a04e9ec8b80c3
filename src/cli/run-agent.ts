import { runCommandLine } from './command-line.ts';
import type { Invocation } from './invocation.ts';
import type { Io } from './output/io.ts';

export const runAgent = async (invocation: Invocation, io: Io): Promise<number> => {
  const [first, ...words] = invocation.words;
  if (first === '__complete') {
    const { complete } = await import('./setup/complete.ts');
    return complete({ ...invocation, words: words.slice(words[0] === '--' ? 1 : 0) }, io);
  }
  if (first !== 'open-url') return runCommandLine(invocation, io);
  const { openUrl } = await import('./setup/open-url.ts');
  return openUrl(words, io, invocation.env);
};
