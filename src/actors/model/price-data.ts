// An entry of the build of its own, which price-table.ts loads.
export { calcPrice, findProvider } from '@pydantic/genai-prices';
