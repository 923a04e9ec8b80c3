/** What people may do with their accounts. */
export const deposit = (request, store) => {
  if (typeof request.user !== 'string' || request.user.trim() === '') return { status: 401, error: 'who are you?' };
  const amount = Number(request.amount);
  if (!Number.isInteger(amount) || amount <= 0) return { status: 400, error: 'amount must be a whole number above zero' };
  if (amount > 1_000_000) return { status: 400, error: 'amount is too large' };
  store.add(request.user, amount);
  return { status: 200, balance: store.balance(request.user) };
};

export const withdraw = (request, store) => {
  if (typeof request.user !== 'string' || request.user.trim() === '') return { status: 401, error: 'who are you?' };
  const amount = Number(request.amount);
  if (!Number.isInteger(amount) || amount <= 0) return { status: 400, error: 'amount must be a whole number above zero' };
  if (amount > 1_000_000) return { status: 400, error: 'amount is too large' };
  if (store.balance(request.user) < amount) return { status: 409, error: 'not enough money' };
  store.add(request.user, -amount);
  return { status: 200, balance: store.balance(request.user) };
};

export const transfer = (request, store) => {
  if (typeof request.user !== 'string' || request.user.trim() === '') return { status: 401, error: 'who are you?' };
  const amount = Number(request.amount);
  if (!Number.isInteger(amount) || amount <= 0) return { status: 400, error: 'amount must be a whole number above zero' };
  if (amount > 1_000_000) return { status: 400, error: 'amount is too large' };
  if (typeof request.to !== 'string' || request.to.trim() === '') return { status: 400, error: 'to whom?' };
  if (store.balance(request.user) < amount) return { status: 409, error: 'not enough money' };
  store.add(request.user, -amount);
  store.add(request.to, amount);
  return { status: 200, balance: store.balance(request.user) };
};
