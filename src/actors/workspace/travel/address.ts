import { isAbsolute } from 'node:path';

/** The place of the repository that all servers reach. */
export type WorkAddress =
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 'network'; readonly url: string; readonly protocol: string };

const thisMachine = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const howToSay = 'give the path of a bare repository, or an ssh:// or https:// address of one';

/** @returns the address, or why there is none in this text */
export const parseWorkAddress = (text: string): WorkAddress | string => {
  if (isAbsolute(text)) return { kind: 'folder', path: text };
  if (!URL.canParse(text))
    return `${JSON.stringify(text)} is no address of a repository; ${howToSay}`;
  const { protocol, hostname, password, username } = new URL(text);
  const isWeb = protocol === 'https:' || (protocol === 'http:' && thisMachine.test(hostname));
  if (!isWeb && protocol !== 'ssh:')
    return `${protocol}// is not used for the work of agents; ${howToSay}`;
  if (hostname === '' || hostname.startsWith('-')) return `it names no server; ${howToSay}`;
  if (password !== '' || (isWeb && username !== ''))
    return 'it holds a password, which other users of this machine could read: put it into ~/.netrc';
  return { kind: 'network', url: text, protocol: protocol.slice(0, -1) };
};
