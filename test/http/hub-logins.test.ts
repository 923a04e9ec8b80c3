import { expect, test } from 'vitest';
import { createLogins, type Login, signedText } from '../../src/http/hub/logins.ts';

/** Time, which no test with the real hub can wait for. */

const origin = 'http://localhost:8090';
const day = 24 * 60 * 60 * 1_000;

const open = (kept: readonly Login[] = [], at = Date.parse('2026-12-01T00:00:00Z')) => {
  const time = { now: at };
  let saved: readonly Login[] = kept;
  const logins = createLogins({
    ...{ origin, kept, now: () => time.now },
    save: async (all) => {
      saved = all;
    },
    onSaveFailed: () => {},
  });
  return { time, logins, saved: () => saved };
};

const newKey = async () => {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const pair = await crypto.subtle.generateKey(algorithm, false, ['sign', 'verify']);
  const spki = await crypto.subtle.exportKey('spki', pair.publicKey);
  return {
    publicText: Buffer.from(spki).toString('base64url'),
    sign: async (id: string, nonce: string) => {
      const text = new TextEncoder().encode(signedText(origin, id, nonce));
      const how = { name: 'ECDSA', hash: 'SHA-256' };
      const signature = await crypto.subtle.sign(how, pair.privateKey, text);
      return { id, nonce, signature: Buffer.from(signature).toString('base64url') };
    },
  };
};

test('a code ends after 60 seconds, a nonce too, a token after 12 hours, a login after 30 days', async () => {
  const { time, logins } = open();
  const key = await newKey();
  const late = logins.createCode().code;
  time.now += 60_001;
  expect(await logins.register(late, key.publicText, 'x')).toBe('expired');
  const id = await logins.register(logins.createCode().code, key.publicText, 'x');
  const old = await key.sign(id, logins.createNonce());
  time.now += 60_001;
  expect(await logins.signIn(old)).toBeNull();

  const tab = await logins.signIn(await key.sign(id, logins.createNonce()));

  expect(logins.find(tab?.token ?? '')).toMatchObject({ id });
  time.now += day / 2 - 1;
  expect(logins.find(tab?.token ?? '')).toMatchObject({ id });
  time.now += 1;
  expect(logins.find(tab?.token ?? '')).toBeNull();
  time.now += 29.4 * day;
  const last = await logins.signIn(await key.sign(id, logins.createNonce()));
  // It does not outlive the login.
  expect((last?.expiresAt ?? 0) - time.now).toBeLessThan(day / 2);
  time.now += day;
  expect(await logins.signIn(await key.sign(id, logins.createNonce()))).toBeNull();
  expect(logins.list()).toEqual([]);
});

test('a key counts in the next process, and only at the origin where it was registered', async () => {
  const { logins, saved } = open();
  const key = await newKey();
  const id = await logins.register(logins.createCode().code, key.publicText, 'x'.repeat(1_000));
  const next = open(saved()).logins;

  expect(await next.signIn(await key.sign(id, next.createNonce()))).not.toBeNull();
  // A nonce of the process before.
  expect(await next.signIn(await key.sign(id, logins.createNonce()))).toBeNull();
  expect(saved()[0]?.user_agent).toHaveLength(200);

  const moved = saved().map((each) => ({ ...each, origin: 'http://localhost:9' }));
  expect(open(moved).logins.list()).toEqual([]);
});

test('a login that is revoked while another change is saved stays revoked', async () => {
  const key = await newKey();
  const { logins: before, saved } = open();
  const id = await before.register(before.createCode().code, key.publicText, 'x');
  let onDisk: readonly Login[] | null = null;
  const waiting: (() => void)[] = [];
  const logins = createLogins({
    ...{ origin, kept: saved(), now: () => Date.parse('2026-12-01T00:00:00Z') },
    save: async (all) => {
      const given = [...all];
      await new Promise<void>((resolve) => waiting.push(resolve));
      onDisk = given;
    },
    onSaveFailed: () => {},
  });
  const entering = logins.signIn(await key.sign(id, logins.createNonce()));
  const revoking = logins.revoke(id);
  // The newest write ends first, where two are on their way.
  for (let turn = 0; turn < 20; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    if (turn >= 5) waiting.pop()?.();
  }
  await Promise.all([entering, revoking]);

  expect(onDisk).toEqual([]);
});

test('a public key must be of P-256; the one that was used longest ago gives way to the 51st', async () => {
  const { time, logins } = open();
  const key = await newKey();
  const other = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-384' }, false, [
    'sign',
    'verify',
  ]);
  const spki = await crypto.subtle.exportKey('spki', other.publicKey);
  const { code } = logins.createCode();
  for (const text of ['', 'x', Buffer.from(spki).toString('base64url')])
    expect(await logins.register(code, text, 'x')).toBe('unknown');
  const ids: string[] = [];
  for (let count = 0; count < 51; count += 1) {
    time.now += 1_000;
    ids.push(await logins.register(logins.createCode().code, key.publicText, 'x'));
  }

  expect(logins.list().map(({ id }) => id)).toEqual(ids.slice(1));
});
