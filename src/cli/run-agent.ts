import type { Invocation } from './invocation.ts';
import type { Io } from './output/io.ts';
import { readQuickLook, runQuickLook } from './tasks/quick-look.ts';

export const runAgent = async (invocation: Invocation, io: Io): Promise<number> => {
  const look = readQuickLook(invocation.words);
  if (look !== null) return runQuickLook(look, invocation, io);
  const [first, ...words] = invocation.words;
  if (first === '__complete') {
    const { complete } = await import('./setup/complete.ts');
    return complete({ ...invocation, words: words.slice(words[0] === '--' ? 1 : 0) }, io);
  }
  if (first !== 'open-url') {
    const { runCommandLine } = await import('./command-line.ts');
    return runCommandLine(invocation, io);
  }
  const { openUrl } = await import('./setup/open-url.ts');
  return openUrl(words, io, invocation.env);
};
