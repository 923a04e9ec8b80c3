import { execFileSync, spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const backend = join(
  execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim(),
  'git-http-backend',
);

/** Answers a request with git's own program, for a bare repository. */
export const answerGit = (
  repository: string,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
  sent: (bytes: number) => void = () => {},
): void => {
  const { search } = new URL(request.url ?? '/', 'http://localhost');
  const headers = request.headers;
  const child = spawn(backend, {
    env: {
      ...{ PATH: process.env['PATH'], GIT_HTTP_EXPORT_ALL: '1', GIT_PROJECT_ROOT: repository },
      ...{ REQUEST_METHOD: request.method, PATH_INFO: path, QUERY_STRING: search.slice(1) },
      CONTENT_TYPE: headers['content-type'],
      ...(headers['content-length'] && { CONTENT_LENGTH: headers['content-length'] }),
      ...(headers['content-encoding'] && { HTTP_CONTENT_ENCODING: headers['content-encoding'] }),
      ...(headers['git-protocol'] && { GIT_PROTOCOL: String(headers['git-protocol']) }),
      REMOTE_USER: 'agent',
      REMOTE_ADDR: '127.0.0.1',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const parts: Buffer[] = [];
  child.stdin.on('error', () => {});
  request.pipe(child.stdin);
  child.stdout.on('data', (part: Buffer) => parts.push(part));
  child.once('close', () => {
    const whole = Buffer.concat(parts);
    sent(whole.length);
    const cut = whole.indexOf('\r\n\r\n');
    for (const line of whole.subarray(0, cut).toString().split('\r\n')) {
      const [name = '', value = ''] = line.split(/: (.*)/);
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.end(whole.subarray(cut + 4));
  });
};

/** Serves a bare repository over HTTP with git's own program. `sent`: counts the bytes of answers. */
export const serveRepository = async (
  repository: string,
  sent?: (bytes: number) => void,
): Promise<string> => {
  execFileSync('git', ['config', 'http.receivepack', 'true'], { cwd: repository });
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    answerGit(repository, pathname, request, response, sent);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
};
