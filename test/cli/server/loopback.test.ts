import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openProject } from '../../support/cli.ts';
import { noStrace, testUnless } from '../../support/needs.ts';
import { temporaryFolder } from '../../support/temporary.ts';

testUnless(noStrace)(
  'by default, and with --inspect, a server and its children reach only this machine',
  { tags: ['slow'] },
  async () => {
    const { start, agent, serverFile } = openProject();
    const log = join(temporaryFolder(), 'calls');
    const calls = 'trace=connect,bind,sendto,sendmsg,sendmmsg';
    const strace = ['strace', '-f', '-qq', '-e', calls, '-o', log];
    const server = start('agent-server', ['--server', '--port', '0', '--inspect'], {}, strace);
    while (serverFile() === null) await new Promise((resolve) => setTimeout(resolve, 20));

    const ended = await agent('engineer', 'say hello');
    process.kill(serverFile().pid, 'SIGTERM');
    await once(server, 'exit');

    const addresses = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => /AF_INET6?\b/.test(line))
      .map((line) => /inet_addr\("([^"]+)"|inet_pton\(AF_INET6, "([^"]+)"/.exec(line))
      .map((found) => found?.[1] ?? found?.[2]);
    expect(ended).toMatchObject({ code: 0 });
    expect(addresses.length).toBeGreaterThan(0);
    expect(addresses.filter((address) => address !== '127.0.0.1' && address !== '::1')).toEqual([]);
  },
);
