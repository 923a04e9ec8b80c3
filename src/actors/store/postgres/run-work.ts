import type { Answer } from '../port.ts';
import type { Ask, Asked, Work } from '../rows.ts';

/** Gives the statements of a work one after another to `answer`. */
export const runWork = async <Result>(
  work: Work<Result>,
  answer: (ask: Ask) => Answer<Asked>,
): Promise<Result> => {
  const steps = work[Symbol.iterator]();
  let step = steps.next();
  while (step.done !== true) {
    let asked: Asked;
    try {
      asked = await answer(step.value);
    } catch (error) {
      // The work may have something to say about it.
      if (steps.throw === undefined) throw error;
      step = steps.throw(error);
      continue;
    }
    step = steps.next(asked);
  }
  return step.value;
};
