/** One page of a list; pages count from 1. */
export const paginate = (items, { page = 1, size = 10 } = {}) => {
  const pages = Math.floor(items.length / size);
  const current = Math.min(page, pages);
  const start = (current - 1) * size;
  return { items: items.slice(start, start + size), page: current, pages, hasNext: current < pages };
};
