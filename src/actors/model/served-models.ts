import { z } from 'zod';

const servedModelSchema = z.looseObject({
  id: z.string(),
  owned_by: z.unknown().optional(),
  /** vLLM, OpenRouter, LM Studio and llama.cpp, in this order. */
  max_model_len: z.unknown().optional(),
  context_length: z.unknown().optional(),
  max_context_length: z.unknown().optional(),
  meta: z.unknown().optional(),
});
const modelListSchema = z.object({ data: z.array(servedModelSchema).max(10_000) });
const propsSchema = z.object({
  default_generation_settings: z.object({ n_ctx: z.int().positive() }),
});

export interface ServerModels {
  readonly kind: 'Ollama' | 'llama.cpp' | 'vLLM' | null;
  readonly models: readonly string[] | null;
  readonly contextWindow: number | null;
}

const unknownServer: ServerModels = { kind: null, models: null, contextWindow: null };
const waitMs = 10_000;
const maxCharacters = 4_000_000;

/** Null when there is no such document. A redirect never gets the key. */
const fetchJson = async (url: string, apiKey: string): Promise<unknown> => {
  try {
    const response = await fetch(url, {
      headers: { authorization: `Bearer ${apiKey}` },
      redirect: 'manual',
      signal: AbortSignal.timeout(waitMs),
    });
    const text = response.ok ? await response.text() : '';
    return text.length === 0 || text.length > maxCharacters ? null : JSON.parse(text);
  } catch {
    return null;
  }
};

const kindByOwner: Readonly<Record<string, ServerModels['kind']>> = {
  library: 'Ollama',
  llamacpp: 'llama.cpp',
  vllm: 'vLLM',
};

/** Reads `GET /models` of a base URL, and `/props` of llama.cpp. Never rejects. */
export const readServerModels = async (
  baseURL: string,
  apiKey: string,
  model: string,
): Promise<ServerModels> => {
  const parsed = modelListSchema.safeParse(
    await fetchJson(`${baseURL.replace(/(?<!\/)\/+$/, '')}/models`, apiKey),
  );
  if (!parsed.success) return unknownServer;
  const { data } = parsed.data;
  const kind =
    data
      .map(({ owned_by }) => kindByOwner[String(owned_by)] ?? null)
      .find((each) => each !== null) ?? null;
  const own = data.find(({ id }) => id === model);
  const listed = [own?.max_model_len, own?.context_length, own?.max_context_length].find(
    (size): size is number => typeof size === 'number' && size > 0,
  );
  const props =
    kind === 'llama.cpp'
      ? propsSchema.safeParse(await fetchJson(new URL('/props', baseURL).href, apiKey))
      : null;
  const served = props?.success === true ? props.data.default_generation_settings.n_ctx : null;
  return { kind, models: data.map(({ id }) => id), contextWindow: served ?? listed ?? null };
};
