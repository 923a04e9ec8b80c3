// Answers for fake bds that are shell scripts: starting Node would take most of the time of a call.
import { createServer } from 'node:net';
import { answer, recordCall } from './answer.mjs';

/**
 * Setup, folder, process id, names of variables, envelope, input and the number of arguments; then
 * the arguments.
 */
const heads = 7;

const respond = ([setup, cwd, pid, names, envelope, input, , ...argv]) => {
  const { family, ...files } = JSON.parse(setup);
  recordCall(files, argv, names.trimEnd().split('\n'), Number(pid));
  const {
    code,
    stdout = '',
    stderr = '',
  } = answer({ family, argv, cwd, input, envelope: envelope === '1' });
  return `${code}\n${Buffer.byteLength(stderr)}\n${stderr}${stdout}`;
};

/** Every field ends with NUL. */
const serveOne = (socket) => {
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
    const fields = text.split('\0').slice(0, -1);
    if (fields.length >= heads && fields.length === heads + Number(fields[heads - 1]))
      socket.end(respond(fields));
  });
  socket.on('error', () => {});
};

/** @returns its port, and a function that ends it */
export const startBdHost = () =>
  new Promise((resolve) => {
    const server = createServer(serveOne);
    server.listen(0, '127.0.0.1', () =>
      resolve({ port: server.address().port, close: () => server.close() }),
    );
  });
