// 10,000 creations, 20 at a time as programs ask for them: the last tenth beside the first.
import { openSystem, report, timed } from './lib.mjs';

const tasks = 10_000;
const atOnce = 20;
const tenth = tasks / 10;
const { system, close } = await openSystem();
const figures = [];
for (let part = 0; part < 10; part += 1)
  figures.push(
    await timed(async () => {
      let left = tenth;
      const work = async () => {
        while (left > 0) {
          left -= 1;
          await system.service.create({ description: `task ${part}/${left}` });
        }
      };
      await Promise.all(Array.from({ length: atOnce }, work));
    }),
  );
await close();
const [first, last] = [figures[0] / tenth, figures[9] / tenth];
report('creation: last tenth of 10,000 / first', {
  ours: last,
  limit: first,
  ratio: last / first,
  goal: 1.5,
});
