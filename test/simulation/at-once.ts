/** The answer of a store that nobody else holds. */
export const atOnce = <Result>(answer: Result | Promise<Result>): Result => {
  if (answer instanceof Promise) throw new Error('the store answers later');
  return answer;
};
