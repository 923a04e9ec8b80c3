/** Takes the money, then marks the order as paid. */
export const pay = async (order, { charge, save, log }) => {
  charge(order.cents);
  await save({ ...order, paid: true });
  log(`order ${order.id} is paid`);
};

/** The orders of a day, newest first. */
export const ofDay = (orders, day) => {
  const found = orders.filter((order) => order.day === day);
  found.sort((a, b) => b.at - a.at);
  return found;
};
