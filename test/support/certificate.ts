import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execaSync } from 'execa';
import { temporaryFolder } from './temporary.ts';

/** A self-signed certificate for `name`; `path` is for NODE_EXTRA_CA_CERTS. */
export const makeCertificate = (name = 'IP:127.0.0.1') => {
  const folder = temporaryFolder();
  const [key, path] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=a test provider', '-addext', `subjectAltName=${name}`];
  const files = ['-keyout', key, '-out', path];
  execaSync('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '1',
    ...subject,
    ...files,
  ]);
  return { path, tls: { key: readFileSync(key, 'utf8'), cert: readFileSync(path, 'utf8') } };
};
