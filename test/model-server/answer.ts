import type { IncomingHttpHeaders } from 'node:http';

/** As chat completions count; responses get it in their own words. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens?: number;
  readonly prompt_tokens_details?: {
    readonly cached_tokens: number;
    readonly cache_write_tokens?: number;
  };
}

export interface GivenAnswer {
  readonly kind: 'answer';
  readonly text?: string;
  /** What the model thinks before: over chat in this field, over responses as a sealed item. */
  readonly thought?: { readonly field: string; readonly text: string };
  readonly calls?: readonly {
    readonly id?: string;
    readonly name: string;
    /** Where codex keeps the tools of a server; over responses alone. */
    readonly namespace?: string;
    readonly arguments: string;
  }[];
  readonly finish?: string | null;
  readonly usage?: Usage | null;
  /** Keeps the socket open after the last chunk. */
  readonly hold?: boolean;
}

export interface GivenError {
  readonly kind: 'error_event';
  readonly error?: Readonly<Record<string, unknown>>;
  /**
   * How responses carry it: `nested` as servers do, `flat` as the reference says, or in `failed`,
   * the last event.
   */
  readonly as?: 'nested' | 'flat' | 'failed';
}

export type Fault =
  | 'silence'
  | 'headers_only'
  | 'comments_only'
  | 'stall'
  | 'reset'
  | 'cut'
  | 'half_event'
  | 'bad_json'
  | 'html'
  | 'empty';

/**
 * What the scripted provider does with a request. `answer` streams text, calls, finish reason and
 * usage; `finish: null` and `usage: null` leave theirs out. `status` answers without a stream. The
 * rest are faults: `silence` sends nothing at all, `headers_only` no byte after the headers,
 * `comments_only` keep-alives and no answer. `stall`, `reset` (RST), `cut` (clean end) and
 * `half_event` come after a first piece. `bad_json` and `error_event` are pieces of a stream,
 * `html` is a 200 that is none, `empty` has no piece.
 */
export type Answer =
  | GivenAnswer
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Record<string, string>;
      /** Sent as JSON; a string is sent as it is. */
      readonly body?: unknown;
    }
  | GivenError
  | { readonly kind: Fault };

export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

export type Frame = string | Uint8Array;

/** What the protocols differ in; each frame is written on its own. */
export interface Wire {
  /** As the real one refuses a request. */
  readonly refuses?: (
    seen: SeenRequest,
  ) => { readonly status: number; readonly body: unknown } | null;
  readonly frames: (given: GivenAnswer) => readonly Frame[];
  readonly error: (given: GivenError) => Frame;
  readonly half: Frame;
  /** Without them: those of server-sent events. */
  readonly contentType?: string;
  readonly halfEvent?: Frame;
  readonly noJson?: Frame;
}

export interface ModelServer {
  /** Every request so far, oldest first. */
  readonly requests: readonly SeenRequest[];
  readonly origin: string;
  /** `origin` with `/v1`; any other path is served the same. */
  readonly baseURL: string;
  /** Closes every socket, hanging ones too. */
  close(): Promise<void>;
}

export interface ModelServerOptions {
  readonly answer: (request: SeenRequest, number: number) => Answer | Promise<Answer>;
  /** Key and certificate in PEM; with them it speaks https. */
  readonly tls?: { readonly key: string; readonly cert: string };
}
