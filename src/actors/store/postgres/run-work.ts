import type { Answer } from '../port.ts';
import type { Ask, Asked, Asks, Work } from '../rows.ts';

/** Gives the statements of a work one after another to `answer`. */
export const runWork = async <Result>(
  work: Work<Result>,
  answer: (asked: Ask | Asks) => Answer<Asked>,
): Promise<Result> => {
  const steps = work[Symbol.iterator]();
  let step = steps.next();
  while (step.done !== true) {
    let asked: Asked;
    try {
      const answered = answer(step.value);
      asked = answered instanceof Promise ? await answered : answered;
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
