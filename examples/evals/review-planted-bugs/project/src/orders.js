/** Takes the money, then marks the order as paid. */
export const pay = async (order, { charge, save }) => {
  await charge(order.cents);
  await save({ ...order, paid: true });
};

/** The orders of a day, newest first. */
export const ofDay = (orders, day) =>
  orders.filter((order) => order.day === day).sort((a, b) => b.at - a.at);
