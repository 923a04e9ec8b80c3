import assert from 'node:assert/strict';
import { check, node, ownTestsWith, read } from '../check.mjs';

const path = 'src/schedule.js';
const broken = "/** The times (ms since midnight) at which a job runs on a day: from `from` to before `to`, every `everyMs`. */\nexport const runTimes = ({ from, to, everyMs }) => {\n  const times = [];\n  for (let time = from; time <= to; time += everyMs) times.push(time);\n  return times;\n};\n\n/** The first run at or after `now`, or null when none is left today. */\nexport const nextRun = (job, now) => runTimes(job).find((time) => time > now) ?? null;\n";
const end = broken.replace('time <= to', 'time < to');
const now = broken.replace('time > now', 'time >= now');
const both = end.replace('time > now', 'time >= now');
const failures = () => {
  const { stdout } = node(['--test', '--test-reporter=tap', 'test/reproduce.test.js']);
  return Number(/^# fail (\d+)/m.exec(stdout)?.[1] ?? -1);
};

await check({
  'the code is as it was': () => assert.equal(read(path), broken),
  'two tests fail': () => assert.equal(failures(), 2),
  'they fail with each half fixed': () => {
    assert.equal(ownTestsWith(path, end).pass, false, 'the second bug is not noticed');
    assert.equal(ownTestsWith(path, now).pass, false, 'the first bug is not noticed');
  },
  'they pass when both are fixed': () => assert.equal(ownTestsWith(path, both).pass, true),
});
