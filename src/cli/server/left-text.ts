import { plural } from '../../machines/plural.ts';

/** `3 running tasks are parked and 20 wait; they go on` */
export const leftText = (parked: number, waiting: number): string => {
  const isOne = parked + waiting === 1;
  const texts = [
    ...(parked === 0
      ? []
      : [`${plural(parked, 'running task')} ${parked === 1 ? 'is' : 'are'} parked`]),
    ...(waiting === 0
      ? []
      : [
          `${parked === 0 ? plural(waiting, 'task') : waiting} ${waiting === 1 ? 'waits' : 'wait'}`,
        ]),
  ];
  return `${texts.join(' and ')}; ${isOne ? 'it goes on' : 'they go on'}`;
};
