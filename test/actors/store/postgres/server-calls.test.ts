import { connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { parsePostgresAddress } from '../../../../src/actors/store/postgres/address.ts';
import { openPostgresDatabase } from '../../../../src/actors/store/postgres/database.ts';
import {
  type CallAnswer,
  createServerCalls,
  type ServerCalls,
} from '../../../../src/actors/store/postgres/server-calls.ts';
import { ServiceError } from '../../../../src/machines/errors.ts';
import { testUnless } from '../../../support/needs.ts';
import { freshAddress, inPostgres, noPostgres, ownServer } from '../../../support/postgres.ts';

const needsPostgres = testUnless(noPostgres);
const slow = { tags: ['slow'] };

interface Node extends ServerCalls {
  /** What it carried out, in the order in which it began. */
  readonly done: unknown[];
  readonly logged: string[];
  readonly close: () => void;
}

const echo: CallAnswer = async (_, params) => params;

const startNode = async (
  url: string,
  node: string,
  answer: CallAnswer = echo,
  redact = (text: string): string => text,
): Promise<Node> => {
  const db = await openPostgresDatabase(parsePostgresAddress(url, {}));
  onTestFinished(db.close);
  const done: unknown[] = [];
  const logged: string[] = [];
  const calls = createServerCalls(db, {
    node,
    redact,
    log: (message) => void logged.push(message),
  });
  calls.answerWith((method, params) => {
    done.push(params);
    return answer(method, params);
  });
  return { ...calls, done, logged, close: db.close };
};
const startTwo = async (url: string, answer?: CallAnswer): Promise<readonly [Node, Node]> => [
  await startNode(url, 'one'),
  await startNode(url, 'two', answer),
];
const failureOf = async (work: Promise<unknown>): Promise<ServiceError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('it did not fail');
};
const gate = () => {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at);
const ascending = (one: unknown, other: unknown): number => Number(one) - Number(other);

needsPostgres('three servers ask each other 200 times at once: each is done once', async () => {
  const url = await freshAddress();
  const answer: CallAnswer = async (method, params) => [method, params];
  const one = await startNode(url, 'one', answer);
  const two = await startNode(url, 'two', answer);
  const three = await startNode(url, 'three', answer);

  const ways = [
    { from: one, to: two, name: 'two' },
    { from: two, to: one, name: 'one' },
    { from: three, to: one, name: 'one' },
    { from: one, to: three, name: 'three' },
  ];
  const answers = await Promise.all(
    numbers(200).map((n) => {
      const way = ways[n % ways.length];
      return way?.from.ask(way.name, `m${n}`, n);
    }),
  );

  expect(answers).toEqual(numbers(200).map((n) => [`m${n}`, n]));
  expect([...one.done, ...two.done, ...three.done].sort(ascending)).toEqual(numbers(200));
  expect(two.done).toHaveLength(50);
  expect(one.done).toHaveLength(100);
});

needsPostgres('a refusal of the other server has its code and facts', async () => {
  const facts = { task_id: 'bd-a', event: 'cancel', state: 'complete', allowed: ['reopen'] };
  const [one, two] = await startTwo(await freshAddress(), async () => {
    throw ServiceError.from({ code: 'event_not_allowed', facts: facts as never });
  });

  const failure = await failureOf(one.ask('two', 'cancel', ['bd-a']));

  expect([failure.code, failure.facts]).toEqual(['event_not_allowed', facts]);
  expect(failure.message).toBe('task bd-a is complete: cancel is not allowed now; allowed: reopen');
  expect(two.logged).toEqual([]);
});

needsPostgres('a fault of the other server is internal here and in its log', async () => {
  const [one, two] = await startTwo(await freshAddress(), async () => {
    throw new Error('a detail that callers must not see');
  });

  const failure = await failureOf(one.ask('two', 'cancel', ['bd-a']));

  expect([failure.code, failure.facts]).toEqual(['internal', { detail: null }]);
  expect(two.logged).toEqual(['a request of another server failed']);
});

needsPostgres('a code of a later version is named', async () => {
  const [one] = await startTwo(await freshAddress(), async () => {
    throw Object.assign(new ServiceError('internal', { detail: null }), { code: 'out_of_ink' });
  });

  const failure = await failureOf(one.ask('two', 'print', []));

  expect(failure.facts).toEqual({ detail: 'a server of a later version refused it (out_of_ink)' });
});

needsPostgres('a result of nothing is nothing, and absent fields stay absent', async () => {
  const [one] = await startTwo(await freshAddress(), async (method) =>
    method === 'tell' ? undefined : { a: 1, b: undefined },
  );

  expect(await one.ask('two', 'tell', ['bd-a', undefined])).toBeUndefined();
  expect(Object.keys((await one.ask('two', 'show', null)) as object)).toEqual(['a']);
});

needsPostgres('text of any kind arrives as it was sent', async () => {
  const [one] = await startTwo(await freshAddress());
  const hostile = [
    ...['a\0b', "'; drop table server_calls; --", '"\\"', '\\u0000', '\ud800 alone \udfff'],
    ...['\u2028\u202e', '$1 ? ?1 json(', '😀', '\r\n', '__proto__', ''],
  ];

  expect(await one.ask('two', 'quote\'s"', { hostile, __proto__: null })).toEqual({ hostile });
});

needsPostgres('secrets are in no row', async () => {
  const url = await freshAddress();
  const redact = (text: string): string => text.replaceAll('right-word', '[secret]');
  const one = await startNode(url, 'one', echo, redact);
  await startNode(url, 'two', async (_, given) => ({ given, own: 'right-word' }), redact);

  const answer = await one.ask('two', 'respond', ['it is right-word']);

  expect(answer).toEqual({ given: ['it is [secret]'], own: '[secret]' });
  expect(JSON.stringify(await inPostgres(url, 'select * from server_calls'))).not.toContain(
    'right-word',
  );
});

needsPostgres('a request of megabytes is carried, a larger one is refused here', async () => {
  const [one, two] = await startTwo(await freshAddress());
  const megabytes = (count: number): string => 'é'.repeat(count * 512 * 1024);

  expect(await one.ask('two', 'm', megabytes(3))).toBe(megabytes(3));
  const failure = await failureOf(one.ask('two', 'm', megabytes(5)));

  expect(failure.facts).toEqual({
    detail: 'the request for the server two has 5.0 MiB; 4 MiB is the most; send it to that server',
  });
  expect(two.done).toHaveLength(1);
});

needsPostgres('an answer that is too large is refused by name', async () => {
  const [one] = await startTwo(await freshAddress(), async () => 'x'.repeat(5 * 1024 * 1024));

  const failure = await failureOf(one.ask('two', 'diff', ['bd-a']));

  expect(failure.facts).toEqual({
    detail:
      'the answer of the server two has 5.0 MiB; 4 MiB is the most; ask for a part of it, or ask that server',
  });
});

needsPostgres('a slow server does not hold up what others ask it', async () => {
  const { open, opened } = gate();
  const [one, two] = await startTwo(await freshAddress(), async (method, params) => {
    if (method === 'slow') await opened;
    return params;
  });

  const slowCall = one.ask('two', 'slow', 1);
  await expect.poll(() => two.done).toEqual([1]);
  expect(await one.ask('two', 'fast', 2)).toBe(2);
  open();

  expect(await slowCall).toBe(1);
});

needsPostgres('a server that answers too late is named, with what to do', async () => {
  const { open, opened } = gate();
  const url = await freshAddress();
  const [one, two] = await startTwo(url, async () => opened);

  const failure = await failureOf(one.ask('two', 'cancel', ['bd-a'], 1_500));

  expect([failure.code, failure.facts]).toEqual([
    'internal',
    {
      detail: 'the server two did not answer within 1.5 s; look at the task before you try again',
    },
  ]);
  expect(two.done).toEqual([['bd-a']]);
  open();
  await two.stop();
  expect(await one.ask('one', 'm', 'goes on')).toBe('goes on');
});

needsPostgres('a call that nobody took in time is not carried out later', async () => {
  const url = await freshAddress();
  const one = await startNode(url, 'one');

  const failure = await failureOf(one.ask('two', 'cancel', ['bd-a'], 300));
  expect(failure.message).toContain('the server two did not answer within 0.3 s');

  const two = await startNode(url, 'two');
  expect(await one.ask('two', 'm', 'next')).toBe('next');
  expect(two.done).toEqual(['next']);
});

needsPostgres('a server hears at its start of what waits for it', async () => {
  const url = await freshAddress();
  const one = await startNode(url, 'one');
  const call = one.ask('two', 'm', 'early');
  await expect.poll(() => inPostgres(url, 'select node from server_calls')).toHaveLength(1);

  const two = await startNode(url, 'two');

  expect(await call).toBe('early');
  expect(two.done).toEqual(['early']);
});

needsPostgres(
  'a server that stops answers what it began and refuses the rest at once',
  async () => {
    const { open, opened } = gate();
    const [one, two] = await startTwo(await freshAddress(), async (_, params) => {
      await opened;
      return params;
    });
    const begun = one.ask('two', 'm', 'begun');
    await expect.poll(() => two.done).toEqual(['begun']);
    const ownCall = failureOf(two.ask('nobody', 'm', 'own', 60_000));

    const stopped = two.stop();
    const refused = failureOf(one.ask('two', 'm', 'late'));
    expect((await refused).message).toContain('the server two is stopping; try again');
    open();
    await stopped;

    expect(await begun).toBe('begun');
    expect(two.done).toEqual(['begun']);
    await ownCall.catch(() => {});
    expect((await failureOf(two.ask('one', 'm', 1))).message).toContain('this server is stopping');
  },
);

needsPostgres('rows are removed with the next call', async () => {
  const url = await freshAddress();
  const [one] = await startTwo(url);
  await Promise.all(numbers(30).map((n) => one.ask('two', 'm', n)));
  await inPostgres(
    url,
    `insert into server_calls (id, node, asked_by, at, until, method, params) values
     ('old', 'gone', 'gone', 0, clock_ms() - 301000, 'm', '1'),
     ('new', 'gone', 'gone', 0, clock_ms() - 200000, 'm', '1')`,
  );

  await one.ask('two', 'm', 'last');

  const rows = await inPostgres(url, 'select id, params from server_calls order by id');
  expect(rows.map(({ params }) => params).sort()).toEqual(['"last"', '1']);
  expect(rows.map(({ id }) => id)).toContain('new');
});

needsPostgres(
  'the connection that listens is cut again and again: every call is answered, and done once',
  slow,
  async () => {
    const { address } = await ownServer();
    const [one, two] = await startTwo(address);
    const cut = async (): Promise<number> => {
      const cuts = await inPostgres(
        address,
        `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()
           and (query like 'listen %' or query like '%where node = $1%from journal_end')`,
      );
      return cuts.length;
    };
    let cuts = 0;

    for (let round = 0; round < 10; round += 1) {
      const wanted = numbers(10).map((n) => round * 10 + n);
      const there = wanted.map((n) => one.ask('two', 'm', n, 60_000));
      cuts += await cut();
      const back = wanted.map((n) => two.ask('one', 'm', n, 60_000));
      expect(await Promise.all([...there, ...back])).toEqual([...wanted, ...wanted]);
    }

    expect(cuts).toBeGreaterThan(10);
    expect([...two.done].sort(ascending)).toEqual(numbers(100));
    expect([...one.done].sort(ascending)).toEqual(numbers(100));
  },
);

needsPostgres(
  'every connection is cut again and again: what the database did unseen is not done again',
  slow,
  async () => {
    const { address } = await ownServer();
    const [one, two] = await startTwo(address);
    let cuts = 0;
    let isOver = false;
    const cutting = (async () => {
      while (!isOver)
        cuts += (
          await inPostgres(
            address,
            `select pg_terminate_backend(pid) from pg_stat_activity
             where pid <> pg_backend_pid() and query ilike '%server_calls%'`,
          )
        ).length;
    })();

    for (let round = 0; round < 20; round += 1) {
      const wanted = numbers(5).map((n) => round * 5 + n);
      const there = wanted.map((n) => one.ask('two', 'm', n, 90_000));
      const back = wanted.map((n) => two.ask('one', 'm', n, 90_000));
      expect(await Promise.all([...there, ...back])).toEqual([...wanted, ...wanted]);
    }
    isOver = true;
    await cutting;

    expect(cuts).toBeGreaterThan(20);
    expect([...two.done].sort(ascending)).toEqual(numbers(100));
    expect([...one.done].sort(ascending)).toEqual(numbers(100));
  },
);

/**
 * An address of the database behind a proxy, which cuts a connection once for each text: after the
 * commit of a transaction that has the text, before its answer.
 */
const losingAnswers = async (url: string, texts: readonly string[]) => {
  const left = new Set(texts);
  const sockets = new Set<Socket>();
  const proxy = createServer((near) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1');
    let isArmed = false;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => [near, far].map((each) => each.destroy()));
    }
    near.on('data', (data) => {
      for (const text of left) if (data.includes(text)) isArmed = left.delete(text);
      far.write(data);
    });
    far.on('data', (data) => {
      if (isArmed && data.includes('COMMIT\0')) near.destroy();
      else near.write(data);
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  });
  const through = new URL(url);
  const address = proxy.address();
  through.port = String(typeof address === 'object' ? address?.port : '');
  return { url: through.href, left };
};

needsPostgres('a commit whose answer is lost counts, and nothing is done again', slow, async () => {
  const url = await freshAddress();
  const asking = await losingAnswers(url, ['insert into server_calls']);
  const answering = await losingAnswers(url, ['set taken', 'set answer']);
  const one = await startNode(asking.url, 'one');
  const call = one.ask('two', 'm', 'hello');
  await expect.poll(() => inPostgres(url, 'select 1 from server_calls')).toHaveLength(1);
  const two = await startNode(answering.url, 'two');

  expect(await call).toBe('hello');
  await one.ask('two', 'm', 'again');

  expect([...asking.left, ...answering.left]).toEqual([]);
  expect(two.done).toEqual(['hello', 'again']);
  expect(await inPostgres(url, 'select params from server_calls')).toEqual([{ params: '"again"' }]);
});

needsPostgres(
  'the database is killed between question and answer, and comes back: done once, and answered',
  slow,
  async () => {
    const server = await ownServer(['fsync=on']);
    const { open, opened } = gate();
    const [one, two] = await startTwo(server.address, async (_, params) => {
      await opened;
      return params;
    });
    const begun = one.ask('two', 'm', 'begun', 60_000);
    await expect.poll(() => two.done).toEqual(['begun']);

    server.stop('immediate');
    open();
    const meanwhile = one.ask('two', 'm', 'meanwhile', 60_000);
    const hopeless = failureOf(one.ask('two', 'm', 'hopeless', 1_500));
    expect((await hopeless).message).toContain(
      'the server two could not be asked, since the database did not answer, within 1.5 s',
    );
    await server.start();

    expect(await Promise.all([begun, meanwhile])).toEqual(['begun', 'meanwhile']);
    expect(two.done).toEqual(['begun', 'meanwhile']);
  },
);

needsPostgres('a server that dies with a question in hand is named', async () => {
  const { opened } = gate();
  const [one, two] = await startTwo(await freshAddress(), async () => opened);

  const call = failureOf(one.ask('two', 'm', 1, 1_000));
  await expect.poll(() => two.done).toEqual([1]);
  two.close();

  expect((await call).message).toContain('the server two did not answer within 1 s');
});

needsPostgres('a call is carried out once, however often it is told of', async () => {
  const url = await freshAddress();
  const [one, two] = await startTwo(url);
  const { schema } = parsePostgresAddress(url, {});
  const tell = (): Promise<unknown> =>
    inPostgres(
      url,
      `select pg_notify('${schema}', 'call:two'), pg_notify('${schema}', 'answer:one')`,
    );

  const told = Promise.all(numbers(20).map(tell));
  const answers = await Promise.all(numbers(40).map((n) => one.ask('two', 'm', n)));
  await told;
  await inPostgres(
    url,
    `select pg_notify('${schema}', 'call:' || repeat('x', 7000)), pg_notify('${schema}', ':')`,
  );

  expect(answers).toEqual(numbers(40));
  expect(await one.ask('two', 'm', 40)).toBe(40);
  expect([...two.done].sort(ascending)).toEqual(numbers(41));
});
