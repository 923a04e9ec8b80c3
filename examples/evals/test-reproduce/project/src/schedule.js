/** The times (ms since midnight) at which a job runs on a day: from `from` to before `to`, every `everyMs`. */
export const runTimes = ({ from, to, everyMs }) => {
  const times = [];
  for (let time = from; time <= to; time += everyMs) times.push(time);
  return times;
};

/** The first run at or after `now`, or null when none is left today. */
export const nextRun = (job, now) => runTimes(job).find((time) => time > now) ?? null;
