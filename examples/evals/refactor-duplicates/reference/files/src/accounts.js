/** What people may do with their accounts. */
const largest = 1_000_000;
const isName = (value) => typeof value === 'string' && value.trim() !== '';

/** The answer to a request that cannot be served, or null. */
const problemWith = ({ user, amount }) => {
  if (!isName(user)) return { status: 401, error: 'who are you?' };
  const number = Number(amount);
  if (!Number.isInteger(number) || number <= 0)
    return { status: 400, error: 'amount must be a whole number above zero' };
  if (number > largest) return { status: 400, error: 'amount is too large' };
  return null;
};

/** Moves money away from the one who asks, when there is enough; `also` is done with it. */
const takeAway = ({ user, amount }, store, also = () => {}) => {
  if (store.balance(user) < Number(amount)) return { status: 409, error: 'not enough money' };
  store.add(user, -Number(amount));
  also();
  return { status: 200, balance: store.balance(user) };
};

export const deposit = (request, store) => {
  const problem = problemWith(request);
  if (problem !== null) return problem;
  store.add(request.user, Number(request.amount));
  return { status: 200, balance: store.balance(request.user) };
};

export const withdraw = (request, store) => problemWith(request) ?? takeAway(request, store);

export const transfer = (request, store) => {
  const problem = problemWith(request);
  if (problem !== null) return problem;
  if (!isName(request.to)) return { status: 400, error: 'to whom?' };
  return takeAway(request, store, () => store.add(request.to, Number(request.amount)));
};
